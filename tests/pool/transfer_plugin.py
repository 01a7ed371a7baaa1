"""A plugin for transfers, of which is known what it does."""

from __future__ import annotations

SLOW_S, BYTES = 3, 70_000
#: HTCondor's protocol of plugins: hosts "slow..." take their time, hosts "down..." refuse.
PLUGIN = f"""#!/bin/sh
if [ "$1" = -classad ]; then
    printf '%s\\n' 'MultipleFileSupport = true' 'PluginVersion = "1.0"'
    printf '%s\\n' 'PluginType = "FileTransfer"' 'SupportedMethods = "root"'
    exit 0
fi
upload='' status=0
while [ $# -gt 0 ]; do
    case $1 in -infile) in=$2; shift ;; -outfile) out=$2; shift ;; -upload) upload=1 ;; esac
    shift
done
tr -d '\\n' < "$in" | sed 's/\\]/]\\n/g' > "$out.list"
while read -r ad; do
    url=$(printf '%s' "$ad" | sed -n 's/.*[ [;]Url = "\\([^"]*\\)".*/\\1/p')
    file=$(printf '%s' "$ad" | sed -n 's/.*LocalFileName = "\\([^"]*\\)".*/\\1/p')
    [ -n "$url" ] || continue
    ok=true why='' bytes={BYTES}
    case $url in *slow*) sleep {SLOW_S} ;; esac
    case $url in
    *down*) ok=false why='TransferError = "Connection refused"; ' bytes=0 status=1 ;;
    *) [ -n "$upload" ] || head -c {BYTES} /dev/zero > "$file" ;;
    esac
    one='[ TransferSuccess = %s; %sTransferUrl = "%s"; TransferFileName = "%s"; '
    two='TransferProtocol = "root"; TransferTotalBytes = %s; TransferFileBytes = %s ]\\n'
    printf "$one$two" "$ok" "$why" "$url" "${{file##*/}}" "$bytes" "$bytes" >> "$out"
done < "$out.list"
rm -f "$out.list"
exit $status
"""
