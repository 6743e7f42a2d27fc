# shellcheck shell=bash
# Sourced by emit.sh and run.sh.

data_of() { # root, data of a case: words for the trainer, in examples/data
  local root=$1 name file input
  case $2 in
    *GOLDEN=*)
      read -r name <<< "${2#*GOLDEN=}"
      for file in "$root/test/golden/$name".*.npy; do
        input=$(basename "$file" .npy)
        printf ' --data=%s=%s' "${input#"$name".}" "$file"
      done;;
    *) echo "$2";;
  esac
}
