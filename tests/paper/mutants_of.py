"""The mutants of every claim: id → what is wrong → the function that makes a system wrong in that way. Each must turn the verdict."""

from __future__ import annotations

from dataclasses import replace

import mutants_domains as domains
import mutants_learning as learning
import mutants_planning as planning
import numpy as np
from mutants_planning import Mutant
from slow_learning import bernstein_with, log_with

from spanrl.agents.scal import SCAL
from spanrl.agents.ucrl import UCRL

MUTANTS_OF: dict[str, dict[str, Mutant]] = {
    "E0": {
        "the gain is not taken out of the bias": planning.bias_without_gain,
        "the gain of state 0 is reported everywhere": planning.evaluating(lambda g, h: (np.full_like(g, g[0]), h)),
        "the gain is an average over 100 steps": planning.evaluating(lambda g, h: (g + h / 100, h)),
        "the bias is shifted to 0 at state 0": planning.evaluating(lambda g, h: (g, h - h[0] + 0.01)),
        "the diameter is the shortest hitting time": planning.shortest_hitting_time,
    },
    "E1": {
        "evaluates the most likely action": planning.evaluates_likeliest_action,
        "averages the gain over states": planning.evaluating(lambda g, h: (np.full_like(g, g.mean()), h)),
        "the bias has the wrong sign": planning.evaluating(lambda g, h: (g, -h)),
    },
    "L2": {
        "the two weights of the mixture are swapped": planning.slow(weight=planning.weight_swapped),
        "greedy in truncated states": planning.slow(weight=planning.weight_greedy),
        "cuts at mean + c/2": planning.slow(clip=planning.clip_at_mean),
        "stops at the first bracket of 0.5": planning.slow(patience=0.5e10),
    },
    "L3": {
        "averages the gain over states": planning.evaluating(lambda g, h: (np.full_like(g, g.mean()), h)),
        "reports the gain of s1 everywhere": planning.evaluating(lambda g, h: (np.full_like(g, g[1]), h)),
    },
    "P1": {
        "plans pessimistically": planning.solve_with(sense="pessimistic", on_fail="return"),
        "uses half of the span bound": planning.slow(clip=planning.clip_to_half),
        "reports a gain that is 1e-6 too small": planning.solve_reading(planning.shifted_bounds(-1e-6)),
    },
    "L5": {
        "evaluates the most likely action": planning.evaluates_likeliest_action,
        "rounds the gain to two digits": planning.evaluating(lambda g, h: (np.round(g, 2), h)),
    },
    "O1": {
        "raises to max − c instead": planning.clipping(planning.clip_from_below),
        "shrinks instead of cutting": planning.clipping(planning.clip_by_scaling),
        "cuts at mean + c/2": planning.clipping(planning.clip_at_mean),
        "does not cut": planning.clipping(planning.clip_nothing),
    },
    "O2": {
        "shrinks instead of cutting": planning.clipping(planning.clip_by_scaling),
        "forgets the + c": planning.clipping(planning.clip_to_minimum),
    },
    "O3": {
        "shrinks instead of cutting": planning.clipping(planning.clip_by_scaling),
        "cuts at c, not min + c": planning.clipping(planning.clip_at_c),
    },
    "O4": {
        "forgets the + c": planning.clipping(planning.clip_to_minimum),
        "cuts at c, not min + c": planning.clipping(planning.clip_at_c),
    },
    "O5": {"cuts at c, not min + c": planning.clipping(planning.clip_at_c)},
    "O6": {
        "shrinks instead of cutting": planning.slow(clip=planning.clip_by_scaling),
        "raises to max − c instead": planning.slow(clip=planning.clip_from_below),
        "forgets the + c": planning.slow(clip=planning.clip_to_minimum),
        "the damping leaks into the operator": planning.lazy_operator,
    },
    "O7": {
        "raises to max − c instead": planning.slow(clip=planning.clip_from_below),
        "cuts at min v + c instead of min Lv + c": planning.truncated_at_old_minimum,
        "does not cut": planning.slow(clip=planning.clip_nothing),
    },
    "O8": {
        "cuts at c, not min + c": planning.slow(clip=planning.clip_at_c),
        "discounts by 0.99": planning.discounted_operator,
        "forgets the + c": planning.slow(clip=planning.clip_to_minimum),
    },
    "O9": {
        "the damping leaks into the operator": planning.lazy_operator,
        "the γ term is left out of the paper's rule": planning.solve_with(contraction=None),
    },
    "F1": {
        "the minimum is computed as the maximum at v": planning.slow(lowest=planning.lowest_as_highest),
        "actions that do not exist count as minimal": planning.slow(lowest=planning.lowest_among_all),
        "cuts at mean + c/2": planning.slow(clip=planning.clip_at_mean),
    },
    "F2": {
        "the two weights are swapped": planning.slow(weight=planning.weight_swapped),
        "greedy in truncated states": planning.slow(weight=planning.weight_greedy),
        "the policy played has the two probabilities swapped": planning.plays_other_weights,
        "greedy where infeasible": planning.slow(weight=planning.weight_greedy_if_infeasible),
        "the minimum is computed as the maximum at v": planning.slow(lowest=planning.lowest_as_highest),
    },
    "F3": {
        "the solver does not truncate": planning.slow(clip=planning.clip_nothing),
        "the solver uses half of the bound": planning.slow(clip=planning.clip_to_half),
    },
    "X1": {
        "does not cut": planning.slow(clip=planning.clip_nothing),
        "N_c is taken to be T_c": planning.policy_value_is_value,
        "cuts at mean + c/2": planning.slow(clip=planning.clip_at_mean),
    },
    "X2": {
        "augmentation raises instead of lowering": planning.augment_to(
            lambda b: (b.r_low, np.full_like(b.r_high, b.r_max))
        ),
        "augmentation does nothing": planning.augment_to(lambda b: (b.r_low, b.r_high)),
        "N_c is taken to be T_c": planning.policy_value_is_value,
        "greedy where infeasible and truncated": planning.slow(weight=planning.weight_greedy),
        "raises to max − c instead": planning.slow(clip=planning.clip_from_below),
    },
    "X3": {
        "iterates without damping": planning.slow(damping=1.0, limit=2000),
        "the damping leaks into the operator": planning.lazy_operator,
        "does not cut": planning.slow(clip=planning.clip_nothing),
        "stops after the first sweeps": planning.slow(patience=1e12),
    },
    "B1": {
        "hands out mass from the worst state up": planning.fills_worst_first,
        "no optimism in the transitions": planning.ignores_the_set,
        "the minimum is computed as the maximum at v": planning.minimum_as_maximum,
    },
    "B2": {
        "plans pessimistically": planning.solve_with(sense="pessimistic", on_fail="return"),
        "stops at a bracket 50 times too wide": planning.slow(patience=50.0),
        "reads the gain at one state": planning.slow(bracket=planning.bracket_at_first_state),
        "the extended reward leaves its interval": planning.solve_reading(planning.extended_reward_beyond(0.01)),
    },
    "M1": {
        "raises instead of lowering": planning.augment_to(lambda b: (b.r_low, np.full_like(b.r_high, b.r_max))),
        "does nothing": planning.augment_to(lambda b: (b.r_low, b.r_high)),
        "lowers to 0 instead of r_min": planning.lowers_to_zero,
    },
    "M2": {
        "is not applied": planning.perturb_by(lambda eta: 0.0),
        "uses half of η": planning.perturb_by(lambda eta: eta / 2),
        "[η, 1] replaces the interval": planning.perturb_replacing,
        "uses twice η": planning.perturb_by(lambda eta: min(1.0, 2 * eta)),
    },
    "M3": {
        "[η, 1] replaces the interval": planning.perturb_replacing,
        "is not applied": planning.perturb_by(lambda eta: 0.0),
        "uses twice η": planning.perturb_by(lambda eta: min(1.0, 2 * eta)),
    },
    "D1": {
        "uses half of the span bound": planning.slow(clip=planning.clip_to_half),
        "reads the gain at one state, without a certificate": planning.slow(
            bracket=planning.bracket_at_first_state, patience=1e8
        ),
        "reports a gain that is 1e-6 too small": planning.solve_reading(planning.shifted_bounds(-1e-6)),
    },
    "S1": {
        "the two weights of the mixture are swapped": planning.slow(weight=planning.weight_swapped),
        "the minimal action outright in truncated states": planning.slow(weight=planning.weight_minimal),
        "stops at a bracket 20 times too wide": planning.slow(patience=20.0),
        "the minimum is computed as the maximum at v": planning.slow(lowest=planning.lowest_as_highest),
        "N_c is taken to be T_c": planning.policy_value_is_value,
        "reports twice the bias": planning.solve_reading(lambda found: replace(found, bias=2 * found.bias)),
        "reports a gain that is 1e-6 too small": planning.solve_reading(planning.shifted_bounds(-1e-6)),
        "does not cut": planning.slow(clip=planning.clip_nothing, limit=2000),
    },
    "S2": {
        "greedy in truncated states": planning.slow(weight=planning.weight_greedy),
        "uses half of the span bound": planning.slow(clip=planning.clip_to_half),
        "cuts at mean + c/2": planning.slow(clip=planning.clip_at_mean),
    },
    "C0": {
        "13 for 14": learning.radii(bernstein=bernstein_with(root=13.0)),
        "16 for 49/3": learning.radii(bernstein=bernstein_with(slope=16.0)),
        "N for N − 1": learning.radii(bernstein=bernstein_with(less=0)),
        "α outside the root": learning.radii(bernstein=bernstein_with(inside=False)),
        "δ is not divided by S": learning.radii(log_term=log_with(S=False)),
        "δ is not divided by A": learning.radii(log_term=log_with(A=False)),
        "δ is not divided by t": learning.radii(log_term=log_with(t=False)),
        "δ is divided by the number of pairs": learning.radii(log_term=learning.log_of_pairs),
        "A counts columns that no state has": learning.radii(log_term=learning.log_of_columns),
        "biased variance": learning.radii(variance=learning.biased),
        "the optimistic reward is not capped": learning.radii(r_ends=learning.uncapped),
        "the pessimistic reward is cut at 0": learning.radii(r_ends=learning.cut_at_zero),
        "half of the radius for successors never seen": learning.radii(p_ends=learning.unlikely_unseen),
        "UCRL2: 7 for 7/2": learning.radii(hoeffding=7.0),
        "UCRL2: 12 for 14": learning.radii(weissman=12.0),
        "a learner with 13 for 14": learning.learners(bernstein=bernstein_with(root=13.0)),
        "a learner that counts rewards twice": learning.learners(variance=learning.halved),
        "a learner one episode late": learning.stale,
    },
    "C1": {
        "radii a thirtieth": learning.radii(bernstein=learning.shrunk(1 / 30)),
        "a hundredth of the radius for transitions": learning.radii(p_ends=learning.thin),
        "outcomes are drawn with thresholds of 0.999": domains.drawing(domains.lower_thresholds),
        "compiled runs compare with thresholds of 0.999": domains.drawing_compiled(domains.lower_thresholds),
        "a draw leads elsewhere than it says": domains.drawing(domains.swapped_successors),
        "rewards are paid as their means": domains.paid_as_means,
        "environment and agent share one stream": domains.one_stream,
        "Knight Quest: death pays −10": domains.quest(domains.lesser_death),
    },
    "C2": {
        "augmentation is off": learning.radii(augments=False),
        "perturbation is ignored": learning.radii(perturbs=False),
        "reports a bracket that is 1e-6 too small": learning.planning(
            planning.solve_reading(planning.shifted_bounds(-1e-6))
        ),
        "plans pessimistically": learning.planning(planning.solve_with(sense="pessimistic", on_fail="return")),
        "uses half of the span bound": learning.planning(learning.half_the_bound),
        "the two weights of the mixture are swapped": learning.radii(play=learning.swapped),
        "greedy in truncated states": learning.planning(planning.solve_with(policy="greedy")),
        "stops at a bracket 5 times too wide": learning.planning(learning.impatient(5.0)),
        "goes on to a bracket half as wide": learning.learners(accuracy=learning.half_as_wide),
        "ε_k has r_max for r_max − r_min": learning.learners(accuracy=learning.from_r_max),
        "SCAL mixes where greedy actions are asked for": learning.starting(learning.always_mixing),
        "agents forget α_r": learning.starting(learning.without_reward_scale),
    },
    "R1": {
        "log₂(T/SA) for log₂(8T/SA)": learning.bounding(learning.without_eight),
        "√T is forgotten": learning.bounding(learning.without_root),
        "SA for S²A": learning.bounding(learning.one_s_less),
        "Γ for Γ − 1": learning.support_not_less_one,
        "plays the first action, whatever was planned": learning.radii(play=learning.first_action),
    },
    "R2": {
        "an episode at every second visit": learning.radii(limit=learning.every_visit),
        "visits may grow a hundredfold": learning.radii(limit=learning.hundredfold),
    },
    "R6": {
        "goes on while ν ≤ max{1, N}": learning.radii(limit=learning.one_more),
        "stops one visit early": learning.radii(limit=learning.one_less),
        "t_k one too small": learning.radii(first_step=0),
        "counts half of what it sees": learning.half_counted,
        "records half of the span": learning.measured(learning.half_the_span),
        "records the regret as the pseudo-regret": learning.measured(learning.no_pseudo_regret),
        "records one sweep an episode": learning.measured(learning.no_sweeps),
    },
    "R3": {
        "planning: the two weights of the mixture are swapped": planning.slow(weight=planning.weight_swapped),
        "learners that believe their estimates": learning.radii(bernstein=learning.shrunk(0.0)),
        "learners that ignore the span bound": learning.planning(learning.without_bound),
    },
    "R4": {
        "ignores the span bound": learning.planning(learning.without_bound),
        "uses half of the span bound": learning.planning(learning.half_the_bound),
        "greedy in truncated states": learning.planning(planning.solve_with(policy="greedy")),
    },
    "R5": {"ScOpt is damped to a fifth": learning.sluggish_scopt},
    "G1": {
        "UCRL plans under a bound on the span": learning.playing(lambda agent: SCAL(2.0)),
        "the domain has twice the δ that its name says": learning.wider_delta,
        "regret is measured against a gain that is 1e-4 too large": learning.measured(learning.against_a_larger_gain),
        "rewards are paid as their means": domains.paid_as_means,
        "outcomes are drawn with thresholds of 0.999": domains.drawing(domains.lower_thresholds),
    },
    "G2": {
        "SCAL forgets its bound": learning.playing(learning.without_any_bound),
        "SCAL takes the bound 30 − c": learning.playing(learning.other_bound(lambda c: 30 - c)),
        "pseudo-regret counts every step half": learning.measured(learning.half_the_pseudo_regret),
    },
    "G5": {
        "SCAL takes the bound 2, whatever c is": learning.playing(learning.other_bound(lambda c: 2.0)),
        "pseudo-regret counts every step half": learning.measured(learning.half_the_pseudo_regret),
    },
    "G6": {"pseudo-regret counts every step half": learning.measured(learning.half_the_pseudo_regret)},
    "G7": {
        "SCAL takes the bound 2, whatever c is": learning.playing(learning.other_bound(lambda c: 2.0)),
        "pseudo-regret counts every step half": learning.measured(learning.half_the_pseudo_regret),
    },
    "G3": {
        "UCRL plans under a bound on the span": learning.playing(
            lambda agent: SCAL(2.0) if isinstance(agent, UCRL) else agent
        ),
        "SCAL takes a tenth of its bound": learning.playing(learning.other_bound(lambda c: c / 10)),
    },
    "G4": {
        "SCAL forgets its bound": learning.playing(learning.without_any_bound),
        "both use the theory's radii": learning.playing(learning.full_radii),
    },
}
