"""The only code that uses private parts of torch.  Each use is guarded; what is missing is in the report (`availability`).

To observe: `hook_points` has one function for each observed call site in torch (a new hook goes there), `hooks` installs and
removes them, `watched_functions` is how they observe a function, `translators` reads Dynamo's objects.
To steer: `config`, `region_flag`, `marks`, `caches`, `profiling`, `isolated_run`, `custom_operators`.
"""
