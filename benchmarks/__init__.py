"""Speed, measured: every figure stands beside that of a plain peer in the same run. `make bench` prints them all."""
