# Changed since the compilation.
