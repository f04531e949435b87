# Makes the repository where the agent works out of packs that the worker has put into the sandbox. Set in the
# environment: BOBBIN_ORIGIN, its https address; BOBBIN_STORE, the name of the copy beside the checkout;
# BOBBIN_SUBMODULE, its folder in the project if it is a submodule, else empty; BOBBIN_BESIDE, its folder there if it
# stands beside the project's files, else empty; BOBBIN_BRANCH, the branch, empty for a tag or
# a commit; BOBBIN_COMMIT, the commit, empty if there is none yet; BOBBIN_PULL, the number of the pull request whose head
# that commit is, empty if it is none, BOBBIN_INTO and BOBBIN_INTO_COMMIT, the branch into which that is to be merged, and
# where it is; BOBBIN_PIECES, how many files each pack comes in, or
# `look`. The ends of a history that is not whole stand in a file beside the packs. Runs in the sandbox's working
# directory, by any POSIX shell. What stands in `project` is whole: it comes there by one rename. left_out.sh and
# unpack.sh come first, and settle.sh.
umask 077
root=$(pwd)
project="$root/project"
into="$project${BOBBIN_SUBMODULE:+/$BOBBIN_SUBMODULE}${BOBBIN_BESIDE:+/$BOBBIN_BESIDE}"
store="$root/.bobbin/$BOBBIN_STORE"
pieces="$root/.bobbin/carried"
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true GIT_CONFIG_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1
git_() { git -c credential.helper= -c core.hooksPath=/dev/null -c init.defaultBranch=main "$@" </dev/null; }
failed() { tail -n 8 "$1" | head -c 2000; exit 1; }
# The commit that was brought, how many there are if that is not all, and what is not there.
done_() {
  commit=$(git_ -C "$store" rev-parse -q --verify refs/bobbin/base) && printf 'commit\t%s\n' "$commit"
  for pull in $(git_ -C "$store" for-each-ref --format='%(refname)' refs/pull); do
    pull=${pull#refs/pull/}
    printf 'pull\t%s\n' "${pull%/head}"
  done
  [ -s "$store/shallow" ] && printf 'history\t%s\n' "$(git_ -C "$store" rev-list --count refs/bobbin/base)"
  # Where git looks for it: below the project's own folder of git.
  [ -z "$BOBBIN_SUBMODULE" ] || of_project submodule absorbgitdirs >/dev/null 2>&1 || exit 1
  [ -n "$BOBBIN_BESIDE" ] || say_prebuilt
  left_out "$into"
  [ -n "$BOBBIN_SUBMODULE$BOBBIN_BESIDE" ] || named
  exit 0
}
of_project() { GIT_LITERAL_PATHSPECS=1 git_ -C "$project" "$@" -- "$BOBBIN_SUBMODULE"; }
# What the commit says of its submodules: `named`, and commit, address and path of each.
named() {
  module() { git_ -C "$store" config --no-includes --blob refs/bobbin/base:.gitmodules "$@" 2>/dev/null | head -c 1000; }
  module --name-only --get-regexp '^submodule\..*\.path$' | head -n 20 | while IFS= read -r key; do
    path=$(module --get "$key") url=$(module --get "${key%.path}.url")
    case "$path$url" in *[[:cntrl:]]*) continue ;; esac
    entry=$(git_ -C "$store" ls-tree refs/bobbin/base -- "$path" 2>/dev/null | head -n 1)
    commit=${entry#160000 commit }
    [ "$entry" = "160000 commit ${commit%%	*}	$path" ] && printf 'named\t%s\t%s\t%s\n' "${commit%%	*}" "$url" "$path"
  done
}
command -v git >/dev/null 2>&1 || { echo "git is not installed in the sandbox's image"; exit 1; }
if [ -n "$BOBBIN_SUBMODULE" ]; then
  # No link leads there.
  [ "$(cd "$into" 2>/dev/null && pwd -P)" = "$(cd "$project" && pwd -P)/$BOBBIN_SUBMODULE" ] ||
    { echo "its folder is not in the checkout"; exit 1; }
fi
if [ -n "$BOBBIN_BESIDE" ]; then
  # No link of the repository leads elsewhere, and nothing of it stands there.
  at=$project left=$BOBBIN_BESIDE/
  while [ -n "$left" ] && at="$at/${left%%/*}" left=${left#*/}; do
    [ ! -L "$at" ] && { [ ! -e "$at" ] || [ -d "$at" ]; } || { echo "the repository has its own $BOBBIN_BESIDE"; exit 1; }
  done
  [ -e "$into/.git" ] || rmdir "$into" 2>/dev/null
  [ ! -e "$into" ] || [ -e "$into/.git" ] || { echo "the repository has its own $BOBBIN_BESIDE"; exit 1; }
  mkdir -p "${into%/*}" || { echo "No space left on device"; exit 1; }
fi
if [ -e "$into/.git" ] && { [ -n "$BOBBIN_SUBMODULE$BOBBIN_BESIDE" ] || ! is_of_builder; }; then
  rm -rf "$pieces"
  [ "$(git -C "$into" config remote.origin.url </dev/null)" = "$BOBBIN_ORIGIN" ] && done_
  echo "another repository stands in its place"
  exit 1
fi
# What an earlier try left half done.
[ "$BOBBIN_PIECES" = look ] && { rm -rf "$pieces"; exit 9; }
mkdir -p "$root/.bobbin" || { echo "No space left on device"; exit 1; }
rm -rf "$store" "$root"/.bobbin/clone.*
side=$(mktemp -d "$root/.bobbin/clone.XXXXXX") || { echo "No space left on device"; exit 1; }
words="$side/words"
made() { git_ -C "$side/project" "$@" >"$words" 2>&1; }
git_ init --quiet --bare "$store" >"$words" 2>&1 || failed "$words"
git_ init --quiet "$side/project" >"$words" 2>&1 || failed "$words"
git_ -C "$store" symbolic-ref HEAD "refs/heads/${BOBBIN_BRANCH:-main}"
made symbolic-ref HEAD "refs/heads/${BOBBIN_BRANCH:-main}"
made config remote.origin.url "$BOBBIN_ORIGIN"
made config remote.origin.fetch "+refs/heads/*:refs/remotes/origin/*"
made config remote.origin.tagOpt --no-tags
made config "url.$store.insteadOf" "$BOBBIN_ORIGIN"
echo ".bobbin/" >>"$side/project/.git/info/exclude"
if [ -n "$BOBBIN_COMMIT" ]; then
  [ ! -s "$pieces/shallow" ] || cp "$pieces/shallow" "$store/shallow" || failed "$words"
  unpack "$store" "$pieces" $BOBBIN_PIECES >"$words" 2>&1 || failed "$words"
  for ref in refs/bobbin/base ${BOBBIN_BRANCH:+"refs/heads/$BOBBIN_BRANCH"}; do
    git_ -C "$store" update-ref "$ref" "$BOBBIN_COMMIT" >"$words" 2>&1 || failed "$words"
  done
  # The same files under two names, as `git clone` does it: the disk holds them once.
  for pack in "$store"/objects/pack/*; do
    ln "$pack" "$side/project/.git/objects/pack/" 2>/dev/null ||
      cp "$pack" "$side/project/.git/objects/pack/" 2>"$words" || failed "$words"
  done
  [ ! -s "$store/shallow" ] || cp "$store/shallow" "$side/project/.git/shallow" 2>"$words" || failed "$words"
  if [ -n "$BOBBIN_PULL" ]; then
    # On a branch of its own: the pull request's may have the name of the one into which it goes.
    git_ -C "$store" update-ref "refs/pull/$BOBBIN_PULL/head" "$BOBBIN_COMMIT" >"$words" 2>&1 &&
      git_ -C "$store" update-ref "refs/heads/$BOBBIN_INTO" "$BOBBIN_INTO_COMMIT" >"$words" 2>&1 || failed "$words"
    git_ -C "$store" symbolic-ref HEAD "refs/heads/$BOBBIN_INTO"
    made update-ref "refs/remotes/origin/$BOBBIN_INTO" "$BOBBIN_INTO_COMMIT" || failed "$words"
    made symbolic-ref refs/remotes/origin/HEAD "refs/remotes/origin/$BOBBIN_INTO"
    made checkout --quiet --no-track -B "pull-$BOBBIN_PULL" "$BOBBIN_COMMIT" || failed "$words"
  elif [ -n "$BOBBIN_BRANCH" ]; then
    made update-ref "refs/remotes/origin/$BOBBIN_BRANCH" "$BOBBIN_COMMIT" || failed "$words"
    made symbolic-ref refs/remotes/origin/HEAD "refs/remotes/origin/$BOBBIN_BRANCH"
    made checkout --quiet -B "$BOBBIN_BRANCH" --track "origin/$BOBBIN_BRANCH" || failed "$words"
  else
    made checkout --quiet --detach "$BOBBIN_COMMIT" || failed "$words"
  fi
else
  # Diffs and reverts need a commit, and an empty repository has none.
  made -c user.name=Bobbin -c user.email=bobbin@localhost -c commit.gpgsign=false commit -q --allow-empty -m "Start" ||
    failed "$words"
fi
mkdir -p "$store/hooks"
printf '#!/bin/sh\necho "Bobbin pushes, when somebody presses Open pull request."\nexit 1\n' >"$store/hooks/pre-receive"
chmod 700 "$store/hooks/pre-receive"
rm -rf "$pieces"
if [ -n "$BOBBIN_SUBMODULE" ]; then
  # Git refuses here what it would not make either: a name that leads elsewhere, an update by a command.
  of_project submodule init >"$words" 2>&1 || failed "$words"
  # A fetch of the project finds nothing for a submodule, and would fail over that.
  git_ -C "$project" config fetch.recurseSubmodules false
fi
if [ -n "$BOBBIN_SUBMODULE$BOBBIN_BESIDE" ]; then
  if mv -T "$side/project" "$into"; then echo new; else [ -e "$into/.git" ] || exit 1; fi
else
  settle "$side/project" "$into" || exit 1
fi
rm -rf "$side"
done_
