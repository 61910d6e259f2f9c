"""The one place where private parts of torch are used, each guarded: what does not fit is named in the report (`guards`).

To observe: `hook_points` are the call sites in torch, `hooks` installs and removes them, `translators` reads Dynamo's objects.
To steer: `config`, `exceptions`, `region_flag`, `marks`, `caches`, `profiling`, `surroundings`, `custom_operators`.
"""
