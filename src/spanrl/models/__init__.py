"""What a problem is: models, policies and solutions as frozen, validated data (numpy only)."""
