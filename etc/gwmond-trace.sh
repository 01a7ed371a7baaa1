#!/bin/sh
# gwmond-trace.sh: spans of what a job does, below the span that gwmond makes of the job's run.
#
#   gwmond-trace.sh COMMAND [ARGUMENT...]     run a command; the command is one span
#
#   . ./gwmond-trace.sh                       in a shell script of the job:
#   gwmond_span NAME COMMAND [ARGUMENT...]    run a command or a function; spans nest
#   gwmond_span_begin NAME                    the same in two parts
#   gwmond_span_end [STATUS]
#   gwmond_trace_end                          send the spans now: only where a script that has
#                                             sourced this sets a trap for EXIT of its own later
#
# Spans are sent once, as the job ends, in at most 3 seconds, to the endpoint of the standard
# variables OTEL_EXPORTER_OTLP_(TRACES_)ENDPOINT, _HEADERS and _CERTIFICATE.  Without an endpoint
# nothing happens, and the command runs as if this were not there.  Output, exit code and signals of
# the command are its own.  TRACEPARENT is set for children, whatever they trace with.
#
# Needs a POSIX shell; curl, wget or (without TLS) BusyBox; and tools that every system has: od, tr,
# sed, date, wc, and sha256sum, shasum or openssl.  docs/traces.md of gwmond has the contract of the ids.
#
#   GWMOND_TRACE_JOIN_AT_MOST   as join_at_most in gwmond's configuration (500)
#   GWMOND_TRACE_READ_ENVIRONMENT   true where gwmond has read_environment (false)
#   OTEL_SERVICE_NAME           the service of the spans (job)

if [ -n "${_gt_on:-}" ]; then
    return 0 # sourced before, by the same shell
fi
_gt_on=''
_gt_stack=''

# -- which trace

# A traceparent of W3C Trace Context, version 00, which names a span.
_gt_valid() {
    case $1 in
        *[!0-9a-f-]*) return 1 ;;
        00-????????????????????????????????-????????????????-??) ;;
        *) return 1 ;;
    esac
    _gt_rest=${1#00-}
    _gt_trace=${_gt_rest%%-*} _gt_rest=${_gt_rest#*-}
    _gt_span=${_gt_rest%-*} _gt_flags=${_gt_rest##*-}
    case ${#_gt_trace}.${#_gt_span}.${#_gt_flags} in 32.16.2) ;; *) return 1 ;; esac
    case $_gt_trace in *[!0]*) ;; *) return 1 ;; esac
    case $_gt_span in *[!0]*) ;; *) return 1 ;; esac
    case $_gt_flags in ?[13579bdf]) _gt_flags=01 ;; *) _gt_flags=00 ;; esac
}

# An attribute of the job's ad: a number, or a text without quotes.
_gt_ad() {
    sed -n "s/^$1 = \"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1/p" "$_CONDOR_JOB_AD" 2>/dev/null
}

_gt_sha256() {
    if command -v sha256sum; then
        sha256sum
    elif command -v shasum; then
        shasum -a 256
    else
        openssl dgst -sha256 -r
    fi 2>/dev/null | sed -n 's/.*\([0-9a-f]\{64\}\).*/\1/p'
}

# The digest of kind and identity, by the contract.
_gt_digest() {
    if [ $# = 2 ]; then
        printf 'gwmond/1\000%s\000%s' "$1" "$2"
    else
        printf 'gwmond/1\000%s\000%s\000%s' "$1" "$2" "$3"
    fi | _gt_sha256
}

# Whether the job's environment continues a trace, where that counts.
_gt_given() { [ "${GWMOND_TRACE_READ_ENVIRONMENT:-}" = true ] && _gt_valid "${TRACEPARENT:-}"; }

_gt_random() { od -An -v -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }

# Sets _gt_trace, _gt_span and _gt_flags to the span below which this job's are; 1: there is none.
_gt_find() {
    _gt_job=''
    if [ -r "${_CONDOR_JOB_AD:-}" ]; then
        _gt_job=$(_gt_ad GlobalJobId)
    fi
    if [ -z "$_gt_job" ] || [ "$_gt_job" = "${GWMOND_TRACE_JOB:-}" ]; then
        if _gt_valid "${TRACEPARENT:-}"; then
            return
        fi
    fi
    if [ -z "$_gt_job" ]; then
        _gt_trace=$(_gt_random 16) _gt_span='' _gt_flags=01
        return
    fi
    _gt_began=$(_gt_ad JobCurrentStartDate) _gt_procs=$(_gt_ad TotalSubmitProcs)
    _gt_own=$(_gt_digest job "$_gt_job") _gt_run=$(_gt_digest run "$_gt_job" "$_gt_began")
    if [ ${#_gt_own}.${#_gt_run} != 64.64 ] || [ -z "$_gt_began" ]; then
        return 1
    fi
    _gt_run=${_gt_run#????????????????????????????????}
    _gt_own=${_gt_own%????????????????????????????????}
    if ! _gt_valid "$(_gt_ad TraceParent)" && ! _gt_given; then
        _gt_trace=$_gt_own _gt_flags=01
    elif [ "${_gt_procs:-1}" -gt "${GWMOND_TRACE_JOIN_AT_MOST:-500}" ]; then
        _gt_trace=$_gt_own
    fi
    _gt_span=${_gt_run%????????????????}
    export GWMOND_TRACE_JOB="$_gt_job"
}

# -- spans

_gt_now() {
    _gt_ns=$(date +%s%N)
    case $_gt_ns in *[!0-9]*) _gt_ns=$(date +%s)000000000 ;; esac
    printf '%s' "$_gt_ns"
}

gwmond_span_begin() {
    if [ -z "$_gt_on" ]; then
        return 0
    fi
    _gt_stack="$_gt_stack $_gt_span"
    _gt_new=$(_gt_random 8 2>/dev/null) || :
    {
        printf '%s %s %s\n' "${_gt_span:--}" "$(_gt_now)" "$(_gt_text "$1")" >>"$_gt_dir/$_gt_new"
    } 2>/dev/null || :
    _gt_at "$_gt_new"
}

# The span in which what follows is: empty if there is none.
_gt_at() {
    _gt_span=$1
    if [ -n "$1" ]; then
        export TRACEPARENT="00-$_gt_trace-$_gt_span-$_gt_flags"
    else
        unset TRACEPARENT
    fi
}

gwmond_span_end() {
    if [ -z "$_gt_on" ] || [ -z "$_gt_stack" ]; then
        return "${1:-0}"
    fi
    (_gt_write "$_gt_span" "${1:-0}") 2>/dev/null || :
    _gt_at "${_gt_stack##* }"
    _gt_stack=${_gt_stack% *}
    return "${1:-0}"
}

gwmond_span() {
    gwmond_span_begin "$1"
    shift
    "$@"
    gwmond_span_end $?
}

# -- OTLP in protobuf, as hexadecimal digits (opentelemetry/proto/trace/v1/trace.proto); in subshells

# A field that has a length: its tag, its content.
_gt_field() {
    _gt_n=$((${#2} / 2))
    if [ $_gt_n -lt 128 ]; then
        printf '%s%02x%s' "$1" $_gt_n "$2"
    elif [ $_gt_n -lt 16384 ]; then
        printf '%s%02x%02x%s' "$1" $((_gt_n & 127 | 128)) $((_gt_n >> 7)) "$2"
    fi
}

# Sets the length of a field of which the content follows in a file: a varint of four bytes.
_gt_length() {
    printf '%02x%02x%02x%02x' $(($1 & 127 | 128)) $(($1 >> 7 & 127 | 128)) \
        $(($1 >> 14 & 127 | 128)) $(($1 >> 21))
}

# A text: control characters become spaces, what is not UTF-8 a question mark.
_gt_text() {
    printf '%s' "$1" | od -An -v -N250 -tx1 | tr -d '\n' | sed '
        s/ \(c[2-9a-f]\) \([89ab].\)/:\1:\2/g
        s/ \(d.\) \([89ab].\)/:\1:\2/g
        s/ e0 \([ab].\) \([89ab].\)/:e0:\1:\2/g
        s/ \(e[1-9abcef]\) \([89ab].\) \([89ab].\)/:\1:\2:\3/g
        s/ ed \([89].\) \([89ab].\)/:ed:\1:\2/g
        s/ f0 \([9ab].\) \([89ab].\) \([89ab].\)/:f0:\1:\2:\3/g
        s/ \(f[1-3]\) \([89ab].\) \([89ab].\) \([89ab].\)/:\1:\2:\3:\4/g
        s/ f4 \(8.\) \([89ab].\) \([89ab].\)/:f4:\1:\2:\3/g
        s/ [89a-f]./ 3f/g
        s/ [01]./ 20/g
        s/ 7f/ 20/g
        s/[ :]//g'
}

_gt_string() { # an attribute: name, text
    _gt_field "$3" "$(_gt_field 0a "$(_gt_text "$1")")$(_gt_field 12 "$(_gt_field 0a "$(_gt_text "$2")")")"
}

_gt_fixed64() { printf '%016x' "$1" | sed 's/\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)/\8\7\6\5\4\3\2\1/'; }

# Bytes of digits.
_gt_bytes() {
    # shellcheck disable=SC2046,SC2059
    printf "$(printf '\\%03o' $(sed 's/../ 0x&/g'))"
}

# Sane options and variables for what follows in a subshell, whatever the script has set.
_gt_clean() {
    set +eufxvC
    unset IFS
    LC_ALL=C
    export LC_ALL
    umask 077
}

# Writes a span that has ended: its id, its exit status (none: it did not end).
_gt_write() {
    _gt_clean
    read -r _gt_parent _gt_start _gt_name <"$_gt_dir/$1" || return
    _gt_end=$(_gt_now)
    if [ "$_gt_end" -lt "$_gt_start" ]; then
        _gt_end=$_gt_start
    fi
    _gt_out=0a10${_gt_trace}1208$1
    if [ "$_gt_parent" != - ]; then
        _gt_out=${_gt_out}2208$_gt_parent
    fi
    _gt_out=$_gt_out$(_gt_field 2a "$_gt_name")3001
    _gt_out=${_gt_out}39$(_gt_fixed64 "$_gt_start")41$(_gt_fixed64 "$_gt_end")
    case $2 in
        0) ;;
        unfinished) _gt_out=$_gt_out$(_gt_string error.type unfinished 4a)7a021802 ;;
        *)
            _gt_type=exit_nonzero
            if [ "$2" -gt 128 ]; then
                _gt_type=exit_signal
            fi
            _gt_code=$(printf '18%02x' "$2")
            if [ "$2" -gt 127 ]; then
                _gt_code=$(printf '18%02x01' $(($2 & 127 | 128)))
            fi
            _gt_code=$(_gt_field 0a "$(_gt_text process.exit.code)")$(_gt_field 12 "$_gt_code")
            _gt_out=$_gt_out$(_gt_string error.type $_gt_type 4a)$(_gt_field 4a "$_gt_code")7a021802
            ;;
    esac
    _gt_out=$(_gt_field 12 "${_gt_out}850101000000")
    if [ "$(wc -c 2>/dev/null <"$_gt_dir/spans" || echo 0)" -lt 1000000 ]; then
        printf '%s' "$_gt_out" | _gt_bytes >>"$_gt_dir/spans"
    fi
    rm -f "$_gt_dir/$1"
}

# -- sending

_gt_post() {
    _gt_clean
    for _gt_open in "$_gt_dir"/????????????????; do
        if [ -f "$_gt_open" ]; then
            _gt_write "${_gt_open##*/}" unfinished
        fi
    done
    if ! [ -s "$_gt_dir/spans" ]; then
        return
    fi
    _gt_resource=$(_gt_string service.name "${OTEL_SERVICE_NAME:-job}" 0a)
    if [ -n "$_gt_job" ]; then
        _gt_resource=$_gt_resource$(_gt_string htcondor.job.id "$_gt_job" 0a)
    fi
    _gt_resource=$(_gt_field 0a "$_gt_resource")
    _gt_scope=$(_gt_field 0a "$(_gt_field 0a "$(_gt_text gwmond-trace.sh)")")
    _gt_size=$(($(wc -c <"$_gt_dir/spans") + ${#_gt_scope} / 2))
    _gt_scope=12$(_gt_length $_gt_size)$_gt_scope
    _gt_scope=0a$(_gt_length $((_gt_size + 5 + ${#_gt_resource} / 2)))$_gt_resource$_gt_scope
    {
        printf '%s' "$_gt_scope" | _gt_bytes
        cat "$_gt_dir/spans"
    } >"$_gt_dir/body"
    _gt_ca=${OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE:-${OTEL_EXPORTER_OTLP_CERTIFICATE:-}}
    if command -v curl; then
        # Headers in a file, because others on the node see the command line; and no ~/.curlrc.
        _gt_headers | sed 's/[\\"]/\\&/g; s/.*/header = "&"/' >"$_gt_dir/curlrc"
        curl -q -s -m 3 -K "$_gt_dir/curlrc" -H Expect: --data-binary @"$_gt_dir/body" \
            ${_gt_ca:+--cacert "$_gt_ca"} "$_gt_url"
    elif wget --version; then
        _gt_wget
    elif command -v nc; then
        _gt_nc
    fi
}

# The headers, a line each; their values are percent-encoded (W3C Baggage).
_gt_headers() {
    echo 'Content-Type: application/x-protobuf'
    printf '%s\n' "${OTEL_EXPORTER_OTLP_TRACES_HEADERS:-${OTEL_EXPORTER_OTLP_HEADERS:-}}" |
        tr ',' '\n' |
        sed -n 's/^[[:space:]]*\([^=[:space:]]\{1,\}\)[[:space:]]*=[[:space:]]*/\1: /p' |
        while IFS= read -r _gt_rest; do
            _gt_line=''
            while :; do
                case $_gt_rest in *%*) ;; *) break ;; esac
                _gt_line=$_gt_line${_gt_rest%%\%*} _gt_rest=${_gt_rest#*%}
                case $_gt_rest in [0-7][0-9A-Fa-f]*) ;; *) _gt_line=$_gt_line% && continue ;; esac
                _gt_tail=${_gt_rest#??}
                _gt_octal=$(printf '%03o' "0x${_gt_rest%"$_gt_tail"}")
                # shellcheck disable=SC2059
                _gt_line=$_gt_line$(printf "\\$_gt_octal") _gt_rest=$_gt_tail
            done
            printf '%s\n' "$_gt_line$_gt_rest" | tr -d '\r'
        done
}

_gt_wget() {
    {
        printf '%s\n' tries=1 timeout=3 max_redirect=0 check_certificate=on
        printf 'post_file=%s\n' "$_gt_dir/body"
        if [ -n "$_gt_ca" ]; then
            printf 'ca_certificate=%s\n' "$_gt_ca"
        fi
        _gt_headers | sed 's/^/header=/'
    } >"$_gt_dir/wgetrc"
    WGETRC=$_gt_dir/wgetrc _gt_bounded wget -q -O /dev/null "$_gt_url"
}

# HTTP by hand: BusyBox's wget posts no bytes that are 0, and verifies no certificate.
_gt_nc() {
    case $_gt_url in http://*) _gt_rest=${_gt_url#http://} ;; *) return ;; esac
    _gt_host=${_gt_rest%%/*}
    case $_gt_host in *:*) ;; *) _gt_host=$_gt_host:80 ;; esac
    {
        printf 'POST /%s HTTP/1.0\r\nHost: %s\r\n' "${_gt_rest#*/}" "$_gt_host"
        printf 'Content-Length: %s\r\n' "$(($(wc -c <"$_gt_dir/body")))"
        _gt_headers | sed "s/\$/$(printf '\r')/"
        printf '\r\n'
        cat "$_gt_dir/body"
    } | _gt_bounded nc "${_gt_host%:*}" "${_gt_host##*:}"
}

_gt_bounded() {
    if command -v timeout; then
        timeout 3 "$@"
    else
        "$@"
    fi
}

# Ends the spans that are open, with the exit status, and sends all.  Once.
gwmond_trace_end() {
    _gt_status=${1:-$?}
    if [ -n "$_gt_on" ]; then
        while [ -n "$_gt_stack" ]; do
            gwmond_span_end "$_gt_status" || :
        done
        _gt_on=
        (_gt_post) </dev/null >/dev/null 2>&1 || :
        rm -rf "$_gt_dir" 2>/dev/null || :
    fi
    return "$_gt_status"
}

_gt_start() {
    _gt_url=${OTEL_EXPORTER_OTLP_TRACES_ENDPOINT:-}
    if [ -z "$_gt_url" ] && [ -n "${OTEL_EXPORTER_OTLP_ENDPOINT:-}" ]; then
        _gt_url=${OTEL_EXPORTER_OTLP_ENDPOINT%/}/v1/traces
    fi
    case ${OTEL_SDK_DISABLED:-} in [Tt][Rr][Uu][Ee]) return 1 ;; esac
    if [ -z "$_gt_url" ] || ! _gt_find; then
        return 1
    fi
    _gt_at "$_gt_span"
    _gt_dir=$(_gt_random 8)
    if [ "$_gt_flags" = 00 ] || [ -z "$_gt_dir" ]; then
        return 1
    fi
    # A directory: HTCondor transfers no new directories as a job's output.
    _gt_dir=${_CONDOR_SCRATCH_DIR:-${TMPDIR:-/tmp}}/.gwmond-trace-$_gt_dir
    (umask 077 && mkdir "$_gt_dir") 2>/dev/null || return 1
    _gt_on=1
}

# -- as a wrapper

# Runs a command as a grandchild, so that the shell between says whether a signal ended the command
# (a shell writes a line about that), while this one passes signals on.
_gt_wrap() {
    _gt_alone=''
    gwmond_span_begin "${1##*/}"
    if [ -n "${BASH_VERSION:-}" ]; then
        set -m # else INT and QUIT are ignored by what runs in the background
    elif /usr/bin/env --default-signal=INT true 2>/dev/null; then
        _gt_alone='--default-signal=INT,QUIT'
    fi
    for _gt_signal in HUP INT QUIT TERM USR1 USR2; do
        # shellcheck disable=SC2064
        trap "_gt_pass $_gt_signal" "$_gt_signal"
    done
    exec 4<&0 # a shell gives what runs in the background no input
    (
        # shellcheck disable=SC2016
        ${_gt_alone:+/usr/bin/env "$_gt_alone"} sh -c 'echo $$ >"$0/pid"; exec "$@" 2>&3 3>&-' \
            "$_gt_dir" "$@"
        exit $?
    ) <&4 3>&2 2>"$_gt_dir/ended" 4<&- &
    _gt_child=$!
    exec 4<&-
    _gt_result=127
    while :; do
        _gt_got=''
        wait "$_gt_child"
        _gt_waited=$?
        if [ $_gt_waited = 127 ] && ! kill -0 "$_gt_child" 2>/dev/null; then
            break
        fi
        _gt_result=$_gt_waited
        if [ -z "$_gt_got" ]; then
            break
        fi
    done
    _gt_ended=$(sed 1q "$_gt_dir/ended" 2>/dev/null)
    gwmond_trace_end "$_gt_result"
    trap - HUP INT QUIT TERM USR1 USR2
    if [ $_gt_result -gt 128 ] && [ -n "$_gt_ended" ]; then
        # shellcheck disable=SC3045
        ulimit -c 0
        kill -s "$(kill -l $_gt_result)" $$
    fi
    exit $_gt_result
}

# Passes a signal on to the command, as soon as that runs.
_gt_pass() {
    _gt_got=1
    _gt_tries=0
    while ! [ -s "$_gt_dir/pid" ] && [ $_gt_tries -lt 20 ]; do
        sleep 0.1
        _gt_tries=$((_gt_tries + 1))
    done
    kill -s "$1" "$(sed 1q "$_gt_dir/pid")" 2>/dev/null || :
}

# -- begin

# The second line of the script that runs is this file's: it was not sourced.
_gt_is_wrapper() {
    { IFS= read -r _gt_line && IFS= read -r _gt_line; } 2>/dev/null <"$0" || return 1
    case $_gt_line in '# gwmond-trace.sh: '*) ;; *) return 1 ;; esac
}

_gt_exit() {
    _gt_status=$?
    gwmond_trace_end "$_gt_status" || :
    if [ "$_gt_status" = 0 ]; then
        eval "$_gt_before"
    else
        _gt_return "$_gt_status" || eval "$_gt_before"
    fi
}
_gt_return() { return "$1"; }

# A line of what trap prints, made a command.
_gt_trap() {
    case $2 in EXIT) _gt_before=$1 ;; esac
}

if _gt_is_wrapper; then
    if [ $# = 0 ]; then
        echo "usage: ${0##*/} COMMAND [ARGUMENT...]" >&2
        exit 2
    fi
    _gt_start || exec "$@"
    _gt_wrap "$@"
elif _gt_start; then
    # A trap that the script has set before runs after this one.
    _gt_before=''
    trap >>"$_gt_dir/traps"
    eval "$(sed 's/^trap -- /_gt_trap /' "$_gt_dir/traps")"
    rm -f "$_gt_dir/traps"
    trap _gt_exit EXIT
fi
