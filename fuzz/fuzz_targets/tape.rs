#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_wire_fuzz::tape(data));
