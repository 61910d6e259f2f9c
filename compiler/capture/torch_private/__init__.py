"""The only code that uses private parts of torch.

Parts that not every torch has are guarded, and the report names those that are missing (`availability`).

To observe torch: `hooks` has one function for each observed call site in torch (a new hook goes there), `hook_installer`
installs and removes them, `watched_functions` makes a function of torch's call an observer, `translators` reads the objects of
Dynamo.
To steer torch, and to read and restore its state: `config`, `region_flag`, `marks`, `caches`, `profiling`, `isolated_run`,
`tensor_state`, `custom_operators`.
"""
