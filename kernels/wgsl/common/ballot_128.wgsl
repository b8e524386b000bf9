// Sets of lanes of a subgroup of up to 128 lanes.

alias Lanes = vec4<u32>;

fn ballot(vote: bool) -> Lanes {
    return subgroupBallot(vote);
}

fn lane_count(lanes: Lanes) -> u32 {
    let ones = countOneBits(lanes);
    return ones.x + ones.y + ones.z + ones.w;
}

fn first_lane(lanes: Lanes) -> u32 {
    let upper = select(96u + firstTrailingBit(lanes.w), 64u + firstTrailingBit(lanes.z), lanes.z != 0u);
    let lower = select(32u + firstTrailingBit(lanes.y), firstTrailingBit(lanes.x), lanes.x != 0u);
    return select(upper, lower, (lanes.x | lanes.y) != 0u);
}

// Returns the lanes before this one.
fn lanes_before(lane: u32) -> Lanes {
    let word = vec4<u32>(lane >> 5u);
    let at = vec4<u32>(0u, 1u, 2u, 3u);
    let partial = vec4<u32>((1u << (lane & 31u)) - 1u);
    return select(select(vec4<u32>(0u), partial, at == word), vec4<u32>(0xffffffffu), at < word);
}

// Returns those of some lanes that have voted as this one.
fn agreeing(lanes: Lanes, votes: Lanes, vote: bool) -> Lanes {
    return lanes & (votes ^ Lanes(select(0xffffffffu, 0u, vote)));
}
