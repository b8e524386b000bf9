// Keys alone.

fn copy_value(index: u32) {}

fn load_values(lid: u32, from_index: u32) {}

fn exchange_values(lid: u32) {}

fn store_value(i: u32, to_index: u32) {}
