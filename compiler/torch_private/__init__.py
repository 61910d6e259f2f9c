"""The only code that uses private parts of torch.

Parts that not every torch has are guarded, and the report names those that are missing (`availability`).

To observe torch: `hook_points` has one function for each observed call site in torch (a new hook goes there), `hooks` installs
and removes them, `watched_functions` makes a function of torch's call an observer, `translators` reads Dynamo's objects.
To steer torch, and to read and restore its state: `config`, `region_flag`, `marks`, `caches`, `profiling`, `isolated_run`,
`tensor_state`, `custom_operators`.
"""
