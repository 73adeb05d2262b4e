# shellcheck shell=bash
# Messages, bounded waits, and processes that are told apart from strangers.

say() { printf '%s %s\n' "$(date +%H:%M:%S)" "$*" >&2; }
die() { say "error: $*"; exit 1; }

# node N: the settings of one node. Node 1 also runs the control plane, and
# only the names of the others carry their number.
node() {
	N=$1; S=-$N; [ "$N" = 1 ] && S=
	NODE=node$N IP=10.89.0.$N POD_CIDR=10.244.$N.0/24 NODE_CONF=$CONF/node$N NODE_CGROUP=$CGROUP/node$N
}

# A pid file holds "PID STARTTIME", so a reused pid is never signalled.
starttime() { # PID; a zombie counts as dead
	local s
	s=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
	s=${s##*) } # the command's name may hold blanks
	# shellcheck disable=SC2086
	set -- $s
	[ "$1" != Z ] && echo "${20}"
}
pid_save() { echo "$2 $(starttime "$2")" >"$RUN/$1.pid"; } # NAME PID
pid_of() { # NAME: prints the live pid, or fails
	local pid st
	[ -s "$RUN/$1.pid" ] || return 1
	read -r pid st <"$RUN/$1.pid"
	[ -n "$st" ] && [ "$(starttime "$pid" || true)" = "$st" ] && echo "$pid"
}
child_of() { # PID; not every kernel lists a process's children, but each process names its parent
	local f
	f=$(grep -lsx "PPid:[[:space:]]*$1" /proc/[0-9]*/status | head -1)
	[ -n "$f" ] && basename "${f%/status}"
}
gone() { ! pid_of "$1" >/dev/null; }
poll() { # TENTHS CMD..: true as soon as CMD is, false after TENTHS tenths of a second
	local i n=$1; shift
	for ((i = 0; i < n; i++)); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done
	return 1
}
kill_pid() { # NAME: SIGKILL, then wait until it is gone
	local pid
	if pid=$(pid_of "$1"); then kill -KILL "$pid" 2>/dev/null || true; fi
	poll 100 gone "$1" || say "warning: $1 (pid $pid) does not end"
	rm -f "$RUN/$1.pid"
}
wait_for() { # SECONDS WHAT CMD..
	local n=$1 what=$2; shift 2
	local end=$((SECONDS + n))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || die "timed out after $n s waiting for $what (logs in $LOG)"
		sleep 0.1
	done
}

# locked CMD..: one change of this cluster at a time. What CMD leaves running
# must not inherit the lock, so start and namespaces_up close descriptor 9.
locked() {
	mkdir -p "$CACHE/lock"
	exec 9>"$CACHE/lock/$CGROUP"
	flock -w 900 9 || die "another command has been changing this cluster for 15 minutes"
	"$@"
}
is_up() { pid_of init >/dev/null; }
require_up() { is_up || die "the cluster is not up: run $HERE/cluster.sh up"; }

path_of() {
	case $1 in
	kubeconfig) echo "$STATE/kubeconfig" ;;
	state) echo "$STATE" ;;
	log) echo "$LOG" ;;
	audit) echo "$LOG/audit.log" ;;
	bin) readlink -m "$BIN" ;;
	*) die "path wants one of: kubeconfig, state, log, audit, bin" ;;
	esac
}
