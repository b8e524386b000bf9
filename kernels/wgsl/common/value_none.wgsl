// Keys alone.

fn load_values(lid: u32) {}

fn exchange_values(lid: u32) {}

fn copy_value(index: u32) {}

fn store_value(i: u32, at: u32) {}
