"""`%%compile`, `%%observe`, `%compile_defaults` and `%fix`.

`magics` defines them, `flags` turns `Settings` into flags and traits, `completion` completes a line, `loading` adds all of
it to a shell and removes it again.
"""
