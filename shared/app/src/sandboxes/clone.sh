# Clones a repository to where the agent works, and lists what of it is not there (left_out.sh, which comes first, as
# does settle.sh). Set in the environment: BOBBIN_REPO, an https address without credentials; BOBBIN_AT, the branch, tag
# or commit that is wanted, or empty; BOBBIN_OF, the sandbox. Runs in the sandbox's working directory, by any POSIX
# shell. What stands in `project` is whole: it comes there by one rename.
umask 077
root=$(pwd)
command -v git >/dev/null 2>&1 || { echo "git is not installed in the sandbox's image"; exit 1; }
if [ -e "$root/project/.git" ] && ! is_of_builder; then
  in_project() { git -C "$root/project" "$@" </dev/null 2>/dev/null; }
  # The empty repository that an agent's server is started in has come from nowhere and holds nothing: it is no clone.
  [ -n "$(in_project remote)" ] || [ -n "$(in_project ls-tree HEAD | head -n 1)" ] && { say_prebuilt; left_out "$root/project"; exit 0; }
  echo "an empty repository stands in its place"
  exit 1
fi
mkdir -p "$root/.bobbin" || { echo "No space left on device"; exit 1; }
# What an earlier try left half done.
rm -rf "$root"/.bobbin/clone.*
side=$(mktemp -d "$root/.bobbin/clone.XXXXXX") || { echo "No space left on device"; exit 1; }
# Nobody can be asked for credentials, and none are looked for.
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true
git_() { git -c credential.helper= "$@" </dev/null >>"$side/words" 2>&1; }
if [ "${#BOBBIN_AT}" -eq 40 ] && [ -z "$(printf %s "$BOBBIN_AT" | tr -d 0-9a-f)" ]; then
  git_ init --quiet "$side/project" && git_ -C "$side/project" remote add origin "$BOBBIN_REPO" &&
    git_ -C "$side/project" fetch --quiet --depth 50 --no-tags origin "$BOBBIN_AT" &&
    git_ -C "$side/project" checkout --quiet --detach FETCH_HEAD
else
  git_ clone --quiet --depth 50 --single-branch --no-tags ${BOBBIN_AT:+--branch "$BOBBIN_AT"} -- "$BOBBIN_REPO" "$side/project"
fi
status=$?
if [ $status -ne 0 ]; then
  tail -n 8 "$side/words" | head -c 2000
  rm -rf "$side"
  exit $status
fi
echo ".bobbin/" >>"$side/project/.git/info/exclude"
# Diffs and reverts need a commit, and an empty repository has none.
git -C "$side/project" rev-parse -q --verify HEAD >/dev/null 2>&1 ||
  git -C "$side/project" -c user.name=Bobbin -c user.email=bobbin@localhost -c commit.gpgsign=false \
    commit -q --allow-empty -m "Start" </dev/null >/dev/null 2>&1
settle "$side/project" "$root/project" || exit 1
rm -rf "$side"
say_prebuilt
left_out "$root/project"
exit 0
