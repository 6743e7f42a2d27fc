#!/bin/sh
# Make text.u16.bin: Genesis and Exodus in the King James version, from Debian's
# bible-kjv packages (unpacked in a temporary folder, not installed). The text was
# published in 1611 and is in the public domain.
# Format: one little-endian uint16 per token; a token is a byte of the text.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
apt-get download bible-kjv bible-kjv-text
for package in *.deb; do dpkg-deb -x "$package" .; done
usr/bin/bible -p usr/lib -d bible.data -f gen1:1-exo40:38 </dev/null >text
python3 - text "$here/text.u16.bin" <<'EOF'
import array, sys
tokens = array.array("H", list(open(sys.argv[1], "rb").read()))
if sys.byteorder == "big":
    tokens.byteswap()
tokens.tofile(open(sys.argv[2], "wb"))
print(f"{len(tokens)} tokens below {max(tokens) + 1}")
EOF
