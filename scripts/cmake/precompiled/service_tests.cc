// Compiles nothing but its precompiled header.
