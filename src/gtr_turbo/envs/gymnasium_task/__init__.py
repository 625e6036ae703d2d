"""Other people's Gymnasium environments as tasks: `make_task("gym:FrozenLake-v1", {}, seed)`.

Any id with a picture and with numbered or written actions. (`envs.gym` goes the other way.)
"""
