# Makes the repository where the agent works out of a pack that the worker has put into the sandbox. Set in the
# environment: BOBBIN_ORIGIN, its https address; BOBBIN_BRANCH and BOBBIN_COMMIT, its branch and the commit of it, empty
# if it has none yet; BOBBIN_PIECES, how many files the pack comes in. Runs in the sandbox's working directory, by any
# POSIX shell. What stands in `project` is whole: it comes there by one rename. left_out.sh comes first.
umask 077
root=$(pwd)
store="$root/.bobbin/origin.git"
pieces="$root/.bobbin/carried"
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true GIT_CONFIG_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1
git_() { git -c credential.helper= -c core.hooksPath=/dev/null -c init.defaultBranch=main "$@" </dev/null; }
failed() { tail -n 8 "$1" | head -c 2000; exit 1; }
command -v git >/dev/null 2>&1 || { echo "git is not installed in the sandbox's image"; exit 1; }
if [ -e "$root/project/.git" ]; then
  [ "$(git -C "$root/project" config remote.origin.url </dev/null)" = "$BOBBIN_ORIGIN" ] &&
    { rm -rf "$pieces"; left_out "$root/project"; exit 0; }
  echo "another repository stands in its place"
  exit 1
fi
[ "$BOBBIN_PIECES" = look ] && exit 9
mkdir -p "$root/.bobbin" || { echo "No space left on device"; exit 1; }
# What an earlier try left half done.
rm -rf "$store" "$root"/.bobbin/clone.*
side=$(mktemp -d "$root/.bobbin/clone.XXXXXX") || { echo "No space left on device"; exit 1; }
words="$side/words"
git_ init --quiet --bare "$store" >"$words" 2>&1 || failed "$words"
if [ -n "$BOBBIN_COMMIT" ]; then
  n=0
  while [ "$n" -lt "$BOBBIN_PIECES" ]; do
    cat "$pieces/$n" || exit 1
    n=$((n + 1))
  done | git -C "$store" index-pack --stdin --fix-thin >"$words" 2>&1 || failed "$words"
  git_ -C "$store" update-ref "refs/heads/$BOBBIN_BRANCH" "$BOBBIN_COMMIT" >"$words" 2>&1 || failed "$words"
fi
rm -rf "$pieces"
git_ -C "$store" symbolic-ref HEAD "refs/heads/${BOBBIN_BRANCH:-main}"
mkdir -p "$store/hooks"
printf '#!/bin/sh\necho "Bobbin pushes, when somebody presses Open pull request."\nexit 1\n' >"$store/hooks/pre-receive"
chmod 700 "$store/hooks/pre-receive"
git_ clone --quiet --no-tags "$store" "$side/project" >"$words" 2>&1 || failed "$words"
project() { git -C "$side/project" "$@" </dev/null >/dev/null 2>&1; }
project config "url.$store.insteadOf" "$BOBBIN_ORIGIN"
project config remote.origin.url "$BOBBIN_ORIGIN"
echo ".bobbin/" >>"$side/project/.git/info/exclude"
# Diffs and reverts need a commit, and an empty repository has none.
project rev-parse -q --verify HEAD ||
  project -c user.name=Bobbin -c user.email=bobbin@localhost -c commit.gpgsign=false commit -q --allow-empty -m "Start"
mv -T "$side/project" "$root/project" || { [ -e "$root/project/.git" ] || exit 1; }
rm -rf "$side"
left_out "$root/project"
exit 0
