# Puts packs into a repository. `unpack REPOSITORY FOLDER COUNT…`: the files of the first pack are FOLDER/0.0, FOLDER/0.1
# and so on, COUNT of them, those of the second FOLDER/1.0, … Each file goes when it is read: the disk has to hold little
# more than the packs.
unpack() {
  to=$1 from=$2 pack=0
  shift 2
  for count in "$@"; do
    n=0
    while [ "$n" -lt "$count" ]; do
      cat "$from/$pack.$n" || exit 1
      rm -f "$from/$pack.$n"
      n=$((n + 1))
    done | git -C "$to" index-pack --stdin --fix-thin || return 1
    pack=$((pack + 1))
  done
  rm -rf "$from"
}
