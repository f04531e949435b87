# Prints the review that the agent has written: a line `review`, then what its file holds, up to one byte more than
# BOBBIN_BYTES. Nothing, if there is none, if a link stands there, or if the repository itself has such a file: that is
# not the agent's. Set in the environment: BOBBIN_WORKSPACE, where it works; BOBBIN_FILE, the file; BOBBIN_BASE, the commit
# that was brought; BOBBIN_BYTES. Runs in the sandbox's working directory, by any POSIX shell.
cd "$BOBBIN_WORKSPACE" 2>/dev/null || exit 0
[ -f "$BOBBIN_FILE" ] && [ ! -L "$BOBBIN_FILE" ] && [ ! -L "${BOBBIN_FILE%/*}" ] || exit 0
git cat-file -e "$BOBBIN_BASE:$BOBBIN_FILE" </dev/null >/dev/null 2>&1 && exit 0
echo review
head -c $((BOBBIN_BYTES + 1)) "$BOBBIN_FILE"
exit 0
