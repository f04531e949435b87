# Runs steps one after another until one fails. Arguments: folder with the steps, their number, seconds of one,
# seconds of all, bytes that are kept of a step's output, `keep` if it stays afterwards, and `on` if a step that fails
# does not end it. Writes into the folder: `runs`, its process; `ends`, of each step the exit code, `late`, or `unrun`
# if no time was left for it, and at last `over`; `took`, their seconds; N.log. A second one ends at once.
dir=$1 count=$2 step_s=$3 all_s=$4 half=$(($5 / 2)) keep=$6 goes_on=$7
IFS= read -r stat </proc/$$/stat
rest=${stat##*) }
set -- $rest
(set -C; echo "$$ ${20}" >"$dir/runs") 2>/dev/null || exit 0
ulimit -u 4000 2>/dev/null || ulimit -p 4000 2>/dev/null
# The lines of a piece of output, without the one that is there in part: part of a secret is not known as one. whole
# FILE WHICH
whole() {
  tr '\r' '\n' <"$1" | sed "$2" >"$1.whole"
  if [ -s "$1.whole" ]; then cat "$1.whole"; else echo '(one long line left out)'; fi
  rm -f "$1.whole"
}
# Puts the end of an output behind its beginning. Where something between is left out, the lines that are there in part
# are too.
join() {
  if [ $(($(wc -c <"$1.rest"))) -lt $((half - 3)) ]; then
    cat "$1.rest"
  else
    { whole "$1.log" '$d'; echo ...; whole "$1.rest" 1d; } >"$1.new" && mv -f "$1.new" "$1.log"
  fi
  rm -f "$1.rest"
}
shell=$(command -v bash || command -v sh)
begun=$(date +%s)
nth=0
while [ "$nth" -lt "$count" ]; do
  nth=$((nth + 1))
  started=$(date +%s)
  limit=$((all_s - (started - begun)))
  if [ "$limit" -gt "$step_s" ]; then limit=$step_s; fi
  if [ "$limit" -le 0 ]; then
    echo unrun >>"$dir/ends"
    continue
  fi
  # Who holds the pipe after the step does not hold up the next one.
  rm -f "$dir/$nth.pipe"
  mkfifo "$dir/$nth.pipe" || break
  {
    head -c "$half"
    tail -c $((half - 3)) >"$dir/$nth.rest"
    join "$dir/$nth"
  } <"$dir/$nth.pipe" >"$dir/$nth.log" 2>/dev/null &
  reader=$!
  echo "$reader" >>"$dir/readers"
  (
    cd "$BOBBIN_PROJECT_OF/project" || exit 1
    # They may have the names of those here.
    set -- timeout -s KILL "$limit" "$shell" "$dir/$nth.sh"
    . "$dir/variables"
    exec "$@"
  ) </dev/null >"$dir/$nth.pipe" 2>&1
  code=$?
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 "$reader" 2>/dev/null || break
    sleep 0.1
  done
  rm -f "$dir/$nth.pipe"
  if [ "$code" -eq 137 ] && [ $(($(date +%s) - started)) -ge "$limit" ]; then code=late; fi
  echo $(($(date +%s) - started)) >>"$dir/took"
  echo "$code" >>"$dir/ends"
  if [ "$code" != 0 ] && [ -z "$goes_on" ]; then break; fi
done
echo over >>"$dir/ends"
# Its life says that what it started is of the sandbox's present start.
if [ -n "$keep" ]; then
  trap : HUP
  while :; do sleep 86400; done
fi
