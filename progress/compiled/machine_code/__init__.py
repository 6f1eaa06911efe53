"""Machine code of kernels: linked, kept on disk, put into memory and called, without the compiler."""
