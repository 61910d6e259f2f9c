"""`%%compile` and `%%observe`, their line magics, `%compile_defaults` and `%fix`.

`magics` defines them, `flag_parser` turns `Settings` into flags and traits, `completion` completes a line, `loading` adds the
magics and their completion to a shell and removes them again.
"""
