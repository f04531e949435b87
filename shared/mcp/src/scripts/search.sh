# Lines that match, as `path:line:text`.
case $BOBBIN_PATH in /*) path=$BOBBIN_PATH ;; *) path=$PWD/$BOBBIN_PATH ;; esac
if [ ! -e "$path" ]; then echo nothing; exit 0; fi
echo there
if command -v rg >/dev/null 2>&1; then
  rg --line-number --no-heading --with-filename --color never --max-columns 500 -e "$BOBBIN_PATTERN" -- "$path" 2>&1
else
  grep -rnIHE --exclude-dir=.git -e "$BOBBIN_PATTERN" -- "$path" 2>&1 | cut -c -600
fi | head -n "$BOBBIN_LINES" | head -c "$BOBBIN_BYTES"
