"""Where agents live: MDPs with reward laws and a start, made by name. Environments never plan."""
