#!/bin/bash
# A custom script of GlideinWMS's factory or frontend: gives overlap.conf, which lies beside it, to a
# share of the pilots, drawn anew by each pilot (docs/overlap.md). It changes nothing else, and never
# fails a pilot.
#
#   GLIDEIN_Overlap_Percent   of 100 pilots so many send output while the next job runs; 0 or nothing:
#                             none. 50 compares best: half of the pilots with, half without.
#   GLIDEIN_Overlap_Senders   so many jobs for each core may send at most, 1 unless given.

glidein_config="$1"
add_config_line_source=$(grep -m1 '^ADD_CONFIG_LINE_SOURCE ' "$glidein_config" | cut -d ' ' -f 2-)
. "$add_config_line_source"
error_gen=$(gconfig_get ERROR_GEN_PATH "$glidein_config")
condor_vars_file=$(gconfig_get CONDOR_VARS_FILE "$glidein_config")  # add_condor_vars_line needs it

say() {
    echo "overlap: $1"
    "$error_gen" -ok overlap.sh overlap "$1"
    exit 0
}

percent=$(gconfig_get GLIDEIN_Overlap_Percent "$glidein_config")
senders=$(gconfig_get GLIDEIN_Overlap_Senders "$glidein_config")
senders=${senders:-1}
[[ "$percent" =~ ^[0-9]+$ ]] || say "off: GLIDEIN_Overlap_Percent is no whole number"
[[ "$senders" =~ ^[1-9][0-9]?$ ]] || say "off: GLIDEIN_Overlap_Senders is no number from 1 to 99"
# Slots of other types, GPUs and the monitor's own startd would be multiplied, too.
[[ -z "$(gconfig_get GLIDEIN_Resource_Slots "$glidein_config")" ]] || say "off: GLIDEIN_Resource_Slots"
[[ "$(gconfig_get GLIDEIN_Monitoring_Enabled "$glidein_config")" != True ]] || say "off: monitoring"
# A pilot of one core has a fixed slot (smart_partitionable.sh): overlap.conf makes it partitionable.
if [[ "$(gconfig_get SLOTS_LAYOUT "$glidein_config")" != partitionable &&
    "$(gconfig_get GLIDEIN_CPUS "$glidein_config")" != 1 ]]; then
    say 'off: slots_layout is not "partitionable"'
fi
conf=$(dirname "$0")/overlap.conf
[[ -r "$conf" ]] || say "off: no overlap.conf beside overlap.sh: it has to be listed first"
(( RANDOM % 100 < percent )) || say "off: not drawn ($percent %)"

gconfig_add OVERLAP_SENDERS "$senders"
add_condor_vars_line OVERLAP_SENDERS C - + N N -
# The factory does not know files of type "config": it passes them on, but HTCondor does not read them.
others=$(gconfig_get LOCAL_CONFIG_FILE "$glidein_config")
gconfig_add LOCAL_CONFIG_FILE "${others:+$others,}$conf"
add_condor_vars_line LOCAL_CONFIG_FILE C - + N N -
say "on: $senders senders for each core"
