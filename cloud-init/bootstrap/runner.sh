# shellcheck shell=bash
# Steps: how one is run, limited, tried again and reported.

say() { TZ=UTC0 printf '%(%Y-%m-%dT%H:%M:%SZ)T %s\n' -1 "$*"; }

# A full disk, which the log cannot be written to, ends nothing here: it would end without a word.
note() {
  local line
  line=$(say "bootstrap: $*")
  { echo "$line"; echo "$line" >>"$log"; } || true
}

# What a step's process says of the command that ended it.
report_failure() { say "exit code $1 of: ${2%%$'\n'*} (line $3)" >&2; }

# What the last line of the output is to say, besides the step's name.
reason() {
  say "$*"
  echo "$*" >"$run/reason"
}

# step NAME SECONDS RETRIES FUNCTION: runs the function in a process of its own, so that a time
# limit holds for all that it starts, and so that the first command to fail ends it. Its timeout keeps the lock where
# this script is killed meanwhile.
step() {
  local name=$1 limit=$2 retries=$3 function=$4 code pause=5 started left full=
  while :; do
    left=$((ZONED_DEADLINE - EPOCHSECONDS))
    limit=$((limit < left ? limit : left))
    started=$SECONDS
    code=0
    rm -f "$run/reason"
    say "bootstrap: $name: begins" >>"$log" || true
    timeout --kill-after=15 "$((limit > 1 ? limit : 1))" "$BASH" "$0" "$function" \
      </dev/null >>"$log" 2>&1 || code=$?
    if ((code == 0)); then
      note "$name: done after $((SECONDS - started)) s"
      return
    fi
    ((code == 124 || code == 137 && SECONDS - started >= limit)) && note "$name: stopped, $limit s were not enough"
    ((retries-- > 0 && left > 60)) || break
    note "$name: exit code $code, next try in $pause s"
    sleep "$pause"
    pause=$((pause < 30 ? pause * 2 : 30))
  done
  (($(stat --file-system --format '%f * %S' "$state") > 1024 * 1024)) ||
    full=$(df --human-readable "$state" | tail --lines=1)
  rm -f "$state/spare"
  note "$name: failed with exit code $code"
  {
    echo "--- end of /var/log/zoned.log on $(uname -n):"
    tail --bytes=2800 "$log"
    echo "---"
    [[ -e $run/reason ]] && printf '%s\n' "$(head --bytes=800 "$run/reason")"
    [[ -z $full ]] || echo "no space left on device: $full," \
      "make room or take a larger disk (zoned:osDiskSizeGb)"
    echo "step \"$name\" failed with exit code $code"
  } >&2 || true
  exit "$code"
}

# One line per change, so that the end of the log says what a step was waiting for.
watch() {
  local now last=
  until now=$("$@" 2>&1); do
    [[ $now == "$last" ]] || reason "$now"
    last=$now
    sleep 5
  done
}
