#!/bin/bash
# Custom script of the factory: glideins listen on loopback only, on this test's ports.
glidein_config="$1"
. "$(grep -m1 '^ADD_CONFIG_LINE_SOURCE ' "$glidein_config" | cut -d ' ' -f 2-)"
condor_vars_file=$(gconfig_get CONDOR_VARS_FILE "$glidein_config")
error_gen=$(gconfig_get ERROR_GEN_PATH "$glidein_config")
set_var() { gconfig_add "$1" "$2"; add_condor_vars_line "$1" C "-" "+" N N "-"; }
set_var NETWORK_INTERFACE 127.0.0.1
set_var BIND_ALL_INTERFACES False
set_var ENABLE_IPV6 False
# The collector is on the same host, but it is not of the glidein's family of daemons.
set_var SEC_USE_FAMILY_SESSION False
# Ads of a glidein that was killed are forgotten sooner than after 15 minutes.
gconfig_add ClassAdLifetime 150
add_condor_vars_line ClassAdLifetime I "-" "+" N Y "-"
"$error_gen" -ok loopback.sh network loopback
exit 0
