//! A whole frame as one graph: one call launches everything from the boxes to their pairs in order,
//! and the host waits for nothing.

use crate::cuda::engine::Engine;
use crate::cuda::find::plan::{FoundBy, Plan};
use crate::cuda::input::device_frame::DeviceFrame;
use crate::cuda::input::source::{BoxLists, List, Source};
use crate::{Aabb, Config, Error, Filter, Pair, Report, Result};
use gpu::{Buffer, Graph, Slice, SliceMut, Stream};

/// A frame of boxes on the device that is recorded once and then launched by one call.
///
/// A launch checks boxes and leaves sorted pairs, without any wait of the host and without a launch
/// for each step. It is for programs whose own frame is on the device, where
/// [`BroadPhase::update_device`](crate::BroadPhase::update_device) would have the host wait once a
/// frame for the count of pairs.
///
/// A graph fixes the number of boxes, whether there are filters and worlds, the capacity for pairs,
/// the plan of cells, and the strategy. Any boxes, filters and worlds give the right pairs, up to
/// the capacity; [`FrameGraph::renew`] adapts the graph to boxes that have become very different.
/// Until then a launch may take long, for two reasons. The bound of `Auto` on tests is off in a
/// graph. And the pairs of one box with its partners of greater index are put in order together: a
/// million take 1.4 ms, ten thousand 15 µs. A graph that is made or renewed while a box, or a few
/// next to each other, have thousands of such partners sorts its pairs instead. That pays somewhere
/// between 10,000 and 100,000, and takes longer below; renew it again when no box has so many.
/// Events, margins, neighbour lists and resting sets belong to updates and are not in a graph.
///
/// ```
/// use sap::{Aabb, Config, FrameGraph};
///
/// let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 3];
/// let graph = FrameGraph::new(&Config::default(), &boxes, None, None, 100);
/// let Ok(mut graph) = graph else { return Ok(()) }; // no GPU here
/// let stream = graph.stream().clone();
/// // A kernel of the program's own would write the boxes.
/// stream.fill_u32(graph.boxes_mut().cast()?, 0)?;
/// graph.launch()?;
/// // Kernels given to the stream now may read the pairs, as many as stand at `count`.
/// let (pairs, count) = (graph.pairs()?, graph.count()?);
/// assert_eq!((pairs.len(), stream.to_vec(count)?), (100, vec![3]));
/// assert_eq!(graph.report()?.pairs, 3); // waits
/// # Ok::<(), sap::Error>(())
/// ```
pub struct FrameGraph {
    /// None after a renewal that failed. It is dropped before the fields below, which it uses.
    graph: Option<Graph>,
    boxes: Buffer<Aabb>,
    filters: Option<Buffer<Filter>>,
    worlds: Option<Buffer<u32>>,
    capacity: usize,
    plan: Plan,
    engine: Box<Engine>,
}

impl FrameGraph {
    /// Uploads a first frame of boxes, with a filter and a world for each if given, finds its pairs
    /// to size everything, and records the graph. The capacity, the length of
    /// [`FrameGraph::pairs`], is at least `capacity` pairs and at least those of this frame.
    ///
    /// # Errors
    ///
    /// [`Error::NoCuda`]; as [`BroadPhase::update`](crate::BroadPhase::update) for the first frame.
    pub fn new(
        config: &Config,
        boxes: &[Aabb],
        filters: Option<&[Filter]>,
        worlds: Option<&[u32]>,
        capacity: usize,
    ) -> Result<Self> {
        let config = Config {
            margin: 0.0,
            events: false,
            timings: false,
            initial_pair_capacity: Some(capacity),
            ..config.clone()
        };
        let mut engine = Box::new(Engine::new(config)?);
        engine.grid.do_without_regions();
        engine.pair_orders[0].stay();
        engine.counters.stay();
        let stream = engine.stream.clone();
        let boxes = stream.from_slice(boxes)?;
        let filters = filters.map(|list| stream.from_slice(list)).transpose()?;
        let worlds = worlds.map(|list| stream.from_slice(list)).transpose()?;
        let frame = frame(&boxes, filters.as_ref(), worlds.as_ref());
        frame.check_lengths()?;
        let capacity = prepare(&mut engine, &frame, capacity)?;
        let (graph, plan) = record(&mut engine, &frame)?;
        Ok(Self {
            plan,
            graph: Some(graph),
            boxes,
            filters,
            worlds,
            capacity,
            engine,
        })
    }

    /// Returns the stream that it runs on. Events order work on another stream before and after it.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.engine.stream
    }

    /// Returns the boxes that the next launch reads, to be written on [`FrameGraph::stream`].
    pub fn boxes_mut(&mut self) -> SliceMut<'_, Aabb> {
        self.boxes.slice_mut()
    }

    /// Returns the filters that the next launch reads, to be written like the boxes; None if the
    /// graph was made without filters.
    pub fn filters_mut(&mut self) -> Option<SliceMut<'_, Filter>> {
        self.filters.as_mut().map(Buffer::slice_mut)
    }

    /// Returns the worlds that the next launch reads, to be written like the boxes; None if the
    /// graph was made without worlds. Any world may be written, also a greater one than before.
    pub fn worlds_mut(&mut self) -> Option<SliceMut<'_, u32>> {
        self.worlds.as_mut().map(Buffer::slice_mut)
    }

    /// Launches a frame, and does not wait for it.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`] after a renewal that failed; else what the driver reports.
    pub fn launch(&self) -> Result<()> {
        let graph = self.graph.as_ref().ok_or(Error::NotRecorded)?;
        Ok(graph.launch(&self.engine.stream)?)
    }

    /// Returns the buffer for pairs. After a launch it begins with them, sorted, as many as
    /// [`FrameGraph::count`] says. If there were more pairs than capacity, these are some of them.
    ///
    /// # Errors
    ///
    /// None that a caller can cause.
    pub fn pairs(&self) -> Result<Slice<'_, Pair>> {
        Ok(self.engine.ordered.part(self.capacity)?.cast()?)
    }

    /// Returns where a launch leaves the count of pairs, exact beyond the capacity too.
    ///
    /// # Errors
    ///
    /// None that a caller can cause.
    pub fn count(&self) -> Result<Slice<'_, u64>> {
        self.engine.counters.pairs()
    }

    /// Waits for the launches so far, and reports the last one.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyPairs`] beyond the capacity, which [`FrameGraph::renew`] raises.
    /// [`Error::InvalidAabb`] unless invalid boxes are skipped. Else what the driver reports.
    pub fn report(&mut self) -> Result<Report> {
        let state = self.engine.counters.read(&self.engine.stream)?;
        let frame = frame(&self.boxes, self.filters.as_ref(), self.worlds.as_ref());
        let sets = [frame.source];
        let invalid = self.engine.check_invalid(&sets, &state)?;
        let limit = self.capacity as u64;
        if state.pairs > limit {
            return Err(Error::TooManyPairs {
                count: state.pairs,
                limit,
            });
        }
        let found_by = FoundBy::new(&self.plan, state.axis);
        let mut report = found_by.report(self.boxes.len(), invalid);
        report.pairs = state.pairs;
        (report.stats.tests, report.stats.sorts) = (state.tests, state.sorts());
        Ok(report)
    }

    /// Records the graph again for its present boxes. The capacity is at least `capacity` pairs, at
    /// least those of this frame, and at least that before. After a failure nothing can be launched
    /// until a renewal succeeds.
    ///
    /// # Errors
    ///
    /// As [`FrameGraph::new`].
    pub fn renew(&mut self, capacity: usize) -> Result<()> {
        // Larger memory may replace what launches under way use.
        self.engine.stream.synchronize()?;
        self.graph = None;
        let frame = frame(&self.boxes, self.filters.as_ref(), self.worlds.as_ref());
        self.engine.drop_plan();
        self.capacity = prepare(&mut self.engine, &frame, capacity)?;
        let (graph, plan) = record(&mut self.engine, &frame)?;
        (self.graph, self.plan) = (Some(graph), plan);
        Ok(())
    }
}

fn frame<'a>(
    boxes: &'a Buffer<Aabb>,
    filters: Option<&'a Buffer<Filter>>,
    worlds: Option<&'a Buffer<u32>>,
) -> DeviceFrame<'a> {
    DeviceFrame {
        source: Source {
            filters: filters.map(|list| List::Device(list.slice())),
            worlds: worlds.map(|list| List::Device(list.slice())),
            ..Source::new(BoxLists::Plain(List::Device(boxes.slice())))
        },
    }
}

/// Runs all steps of the graph once, so that its memory is reserved, and returns the capacity for
/// pairs.
fn prepare(engine: &mut Engine, frame: &DeviceFrame, capacity: usize) -> Result<usize> {
    let sets = [frame.source];
    let all = 0..frame.len() as u64;
    let mut plan = Plan::new(&engine.config);
    engine.read_alone(&sets)?;
    engine.arrange(&mut plan)?;
    engine.find_pairs(&mut plan, &sets, all.clone())?;
    engine.packed.reserve_exact(&engine.stream, capacity)?;
    // Again with the whole capacity, with another plan, in case the first one was bad, and with the
    // finder that is better by what the first one took.
    let mut plan = unbounded(&engine.config);
    engine.read_alone(&sets)?;
    engine.arrange(&mut plan)?;
    engine.find_pairs(&mut plan, &sets, all)?;
    Ok(engine.packed.capacity())
}

/// Returns the plan of a graph: it keeps its finder, however many tests later boxes take.
const fn unbounded(config: &Config) -> Plan {
    Plan {
        is_bounded: false,
        ..Plan::new(config)
    }
}

fn record(engine: &mut Engine, frame: &DeviceFrame) -> Result<(Graph, Plan)> {
    let stream = engine.stream.clone();
    let mut plan = unbounded(&engine.config);
    let mut steps = || {
        engine.read_alone(&[frame.source])?;
        engine.arrange(&mut plan)?;
        let order = engine.sweep(&plan, 0..frame.len() as u64)?;
        engine.order(&plan, order)
    };
    let mut failed = None;
    let graph = stream.capture(|_| {
        steps().map_err(|error| {
            failed = Some(error);
            gpu::Error::Capturing {
                call: "FrameGraph::new",
            }
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok((graph?, plan)),
    }
}
