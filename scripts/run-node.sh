# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The memory node that ./run leaves behind: starting it, and stopping that of an earlier run.
# Sourced, not run; from the root of the project. Wants $espalier, the program.

# Relative, for the path of a socket has at most 107 bytes.
run_folder=build/run
run_socket=$run_folder/node.sock
run_pid_file=$run_folder/node.pid
run_log=$run_folder/node.log
run_address=unix:$run_socket

# Whether this process is the node of a run: a number in a file may be anybody's by now.
is_run_node() {
  local pid=$1 words
  [[ "$pid" =~ ^[1-9][0-9]*$ && -r /proc/$pid/cmdline ]] || return 1
  [[ "$(readlink "/proc/$pid/cwd")" == "$(pwd -P)" ]] || return 1
  words=$(tr '\0' ' ' <"/proc/$pid/cmdline")
  [[ "$words" == *" serve --node-socket $run_socket "* ]]
}

# Stops the node of an earlier run, if it still runs.
stop_run_node() {
  local pid tries
  [[ -f "$run_pid_file" ]] || return 0
  pid=$(<"$run_pid_file")
  if is_run_node "$pid"; then
    echo "stopping the node of ./run, process $pid" >&2
    kill "$pid" 2>/dev/null || true
    for ((tries = 0; tries < 200; ++tries)); do
      is_run_node "$pid" || break
      sleep 0.1
    done
    if is_run_node "$pid"; then
      echo "it does not stop; its log is $run_log. To end it: kill -9 $pid" >&2
      return 1
    fi
  fi
  rm -f "$run_pid_file"
}

# Starts a node in the background, one that outlives this script, and waits until it answers.
# What it is given more are options of `espalier serve`.
# shellcheck disable=SC2154  # espalier is set by whoever sources this
start_run_node() {
  local pid tries
  mkdir -p "$run_folder"
  nohup "$espalier" serve --node-socket "$run_socket" --node-pin true "$@" \
    </dev/null >"$run_log" 2>&1 &
  pid=$!
  disown "$pid"
  echo "$pid" >"$run_pid_file"
  for ((tries = 0; tries < 200; ++tries)); do
    # Who answers might be somebody else's node, while this one could not start.
    if timeout 5 "$espalier" ping --at "$run_address" --count 1 >/dev/null 2>&1 &&
      is_run_node "$pid" && grep -q listening "$run_log"; then
      return 0
    fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  kill "$pid" 2>/dev/null || true
  rm -f "$run_pid_file"
  echo "the node did not start; its log, $run_log:" >&2
  cat "$run_log" >&2
  return 1
}
