// Sets of lanes of a subgroup of at most 32 lanes.

alias Lanes = u32;

fn ballot(vote: bool) -> Lanes {
    return subgroupBallot(vote).x;
}

fn lane_count(lanes: Lanes) -> u32 {
    return countOneBits(lanes);
}

fn first_lane(lanes: Lanes) -> u32 {
    return firstTrailingBit(lanes);
}

// Returns the lanes before this one.
fn lanes_before(lane: u32) -> Lanes {
    return (1u << lane) - 1u;
}

// Returns those of some lanes that have voted as this one.
fn agreeing(lanes: Lanes, votes: Lanes, vote: bool) -> Lanes {
    return lanes & (votes ^ Lanes(select(0xffffffffu, 0u, vote)));
}
