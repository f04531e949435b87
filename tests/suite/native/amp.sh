#!/bin/sh
# Stands in for Amp, which runs nowhere but at its own service: plays the lines that its manual has, and does what they say.
thread="T-00000000-0000-4000-8000-0000000000$(ls | wc -l)"
text=""
while [ $# -gt 0 ]; do
  case "$1" in
    continue) thread=$2; shift ;;
    --execute) text=$2; shift ;;
  esac
  shift
done
say() { printf '{%s,"session_id":"%s"}\n' "$1" "$thread"; }
assistant() { say "\"type\":\"assistant\",\"message\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[$1],\"stop_reason\":\"$2\",\"usage\":{\"input_tokens\":10,\"output_tokens\":5,\"max_tokens\":224000}},\"parent_tool_use_id\":null"; }
say '"type":"system","subtype":"init","cwd":"/project","tools":["Bash"],"mcp_servers":[]'
say '"type":"user","message":{"role":"user","content":[{"type":"text","text":"List the files."}]},"parent_tool_use_id":null'
case "$text" in
  *"out of credits"*)
    say '"type":"result","subtype":"error_during_execution","duration_ms":10,"is_error":true,"num_turns":0,"error":"Out of credits.","permission_denials":[]'
    exit 1
    ;;
  *"take long"*) exec sleep 600 ;;
esac
assistant '{"type":"text","text":"Looking."},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"cmd":"echo one >> a.txt"}}' tool_use
echo one >> a.txt
say '"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"","is_error":false}]},"parent_tool_use_id":null'
assistant "{\"type\":\"text\",\"text\":\"There is a.txt in $thread.\"}" end_turn
say "\"type\":\"result\",\"subtype\":\"success\",\"duration_ms\":2906,\"is_error\":false,\"num_turns\":2,\"result\":\"There is a.txt in $thread.\""
