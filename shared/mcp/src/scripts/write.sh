# Puts a file that lies ready into its place, once under the call's name: a repeat that comes late undoes nothing newer.
ready=$PWD/.bobbin/ready/$BOBBIN_CALL
dir=$PWD/.bobbin/calls/$BOBBIN_CALL
case $BOBBIN_PATH in /*) path=$BOBBIN_PATH ;; *) path=$PWD/$BOBBIN_PATH ;; esac
trap 'rm -f "$ready"' EXIT
mkdir -p "$PWD/.bobbin/calls"
if ! mkdir "$dir" 2>/dev/null; then echo again; exit 0; fi
: >"$dir/changed"
if [ -d "$path" ]; then echo folder; exit 0; fi
mkdir -p "$(dirname "$path")" || exit 1
path=$(readlink -f "$path") || exit 1
if [ -n "$BOBBIN_MODE" ]; then
  chmod "$BOBBIN_MODE" "$ready" || exit 1
elif [ -e "$path" ]; then
  chmod --reference="$path" "$ready" || exit 1
else
  chmod 644 "$ready" || exit 1
fi
mv -f "$ready" "$path" || exit 1
echo written
