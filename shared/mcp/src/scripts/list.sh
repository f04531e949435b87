# What is in a folder, a line each: kind, bytes, path.
case $BOBBIN_PATH in /*) path=$BOBBIN_PATH ;; *) path=$PWD/$BOBBIN_PATH ;; esac
if [ ! -d "$path" ]; then echo nofolder; exit 0; fi
echo folder
find -H "$path" -mindepth 1 -maxdepth "$BOBBIN_DEPTH" \( -name .git -printf '%y %s %P\n' -prune \) -o -printf '%y %s %P\n' |
  sort -k 3 | head -n "$BOBBIN_LINES" | head -c "$BOBBIN_BYTES"
