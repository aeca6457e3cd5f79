#!/bin/sh
# The smallest MCP server on stdio, up in a millisecond: one tool, `count`, that counts the calls of its process.
calls=0
while read -r line; do
    id=${line##*\"id\":}
    id=${id%%[,\}]*}
    case $line in
        *'"method":"initialize"'*)
            result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
        *'"method":"tools/list"'*)
            result='{"tools":[{"name":"count","description":"Counts.","inputSchema":{"type":"object"}}]}' ;;
        *'"method":"tools/call"'*)
            calls=$((calls + 1))
            result='{"content":[],"structuredContent":{"pid":'$$',"calls":'$calls'}}' ;;
        *'"method":"notifications/'*) continue ;;
        *)
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id"
            continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
