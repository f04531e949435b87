# Lists what of a checkout is not there: `submodule` or `large`, a tab, a path.
left_out() {
  git -C "$1" ls-files --stage </dev/null 2>/dev/null | grep '^160000 ' | head -n 10 | cut -f 2 |
    while IFS= read -r path; do printf 'submodule\t%s\n' "$path"; done
  # A pointer stands where the file is not: the first line of the format's description.
  git -C "$1" ls-files -z -- ':(attr:filter=lfs)' </dev/null 2>/dev/null | tr '\000' '\n' | head -n 10 |
    while IFS= read -r file; do
      [ "$(head -c 42 "$1/$file" 2>/dev/null | tr -d '\000')" = 'version https://git-lfs.github.com/spec/v1' ] &&
        printf 'large\t%s\n' "$file"
    done
}
