//! A whole frame as one graph: everything from the boxes to their pairs in order is launched by one call, and the host waits for
//! nothing.

use crate::cuda::engine::Engine;
use crate::cuda::find::plan::{FoundBy, Plan};
use crate::cuda::input::device_frame::DeviceFrame;
use crate::cuda::input::source::Source;
use crate::{Aabb, Config, Error, Filter, Pair, Report, Result};
use gpu::{Buffer, Graph, Slice, SliceMut, Stream};

/// A frame of boxes on the device, recorded once and launched by one call each time: checked boxes in, sorted pairs out, without
/// any wait of the host and without a launch for each step. It is for programs whose own frame lives on the device, where
/// [`crate::BroadPhase::update_device`] would have the host wait once a frame for the number of pairs.
///
/// What a graph fixes when it is made: the number of boxes, whether there are filters and worlds, the room for pairs, how the
/// space is cut and which strategy runs. Any boxes give the right pairs; [`FrameGraph::renew`] suits it to boxes that have become
/// very different. Events, margins and boxes held apart belong to updates and are not in a graph.
///
/// ```
/// use sap::{Aabb, Config, FrameGraph};
///
/// let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 3];
/// let Ok(mut graph) = FrameGraph::new(&Config::default(), &boxes, None, None, 100) else { return Ok(()) }; // no GPU here
/// let stream = graph.stream().clone();
/// stream.fill_u32(graph.boxes_mut().cast()?, 0)?; // a kernel of the program's own would write them
/// graph.launch()?;
/// // Kernels given to the stream now may read them, as many as the number at `count`.
/// let (pairs, count) = (graph.pairs()?, graph.count()?);
/// assert_eq!((pairs.len(), stream.to_vec(count)?), (100, vec![3]));
/// assert_eq!(graph.report()?.pairs, 3); // waits
/// # Ok::<(), sap::Error>(())
/// ```
pub struct FrameGraph {
    config: Config,
    /// None after a renewal that failed. Before what it uses: fields are dropped in this order.
    graph: Option<Graph>,
    boxes: Buffer<Aabb>,
    filters: Option<Buffer<Filter>>,
    worlds: Option<Buffer<u32>>,
    capacity: usize,
    plan: Plan,
    engine: Box<Engine>,
}

impl FrameGraph {
    /// Uploads a first frame of boxes, with a filter and a world for each if given, finds its pairs to size everything, and
    /// records the graph, with room for `capacity` pairs, or for those of this frame if they are more.
    ///
    /// # Errors
    ///
    /// [`Error::NoCuda`]; as [`crate::BroadPhase::update`] for the first frame.
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
            ..config.clone()
        };
        let mut engine = Box::new(Engine::new(&config)?);
        engine.stages.on = false;
        let stream = engine.stream.clone();
        let boxes = stream.from_slice(boxes)?;
        let filters = filters.map(|list| stream.from_slice(list)).transpose()?;
        let worlds = worlds.map(|list| stream.from_slice(list)).transpose()?;
        let frame = frame(&boxes, filters.as_ref(), worlds.as_ref());
        frame.check()?;
        let capacity = prepare(&mut engine, &config, &frame, capacity)?;
        let (graph, plan) = record(&mut engine, &config, &frame)?;
        Ok(Self {
            plan,
            config,
            graph: Some(graph),
            boxes,
            filters,
            worlds,
            capacity,
            engine,
        })
    }

    /// The stream that it runs on. Work on another stream is ordered before and after it by events.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.engine.stream
    }

    /// The boxes that the next launch reads, to be written on [`FrameGraph::stream`].
    pub fn boxes_mut(&mut self) -> SliceMut<'_, Aabb> {
        self.boxes.slice_mut()
    }

    /// Their filters, if it was made with some.
    pub fn filters_mut(&mut self) -> Option<SliceMut<'_, Filter>> {
        self.filters.as_mut().map(Buffer::slice_mut)
    }

    /// Their worlds, if it was made with some.
    pub fn worlds_mut(&mut self) -> Option<SliceMut<'_, u32>> {
        self.worlds.as_mut().map(Buffer::slice_mut)
    }

    /// Runs a frame. Asynchronous.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`] after a renewal that failed; what the driver reports.
    pub fn launch(&self) -> Result<()> {
        let graph = self.graph.as_ref().ok_or(Error::NotRecorded)?;
        Ok(graph.launch(&self.engine.stream)?)
    }

    /// The room for pairs: after a launch the first of it hold them, sorted, as many as [`FrameGraph::count`] says and at most
    /// all. If there were more pairs than room, these are some of them.
    ///
    /// # Errors
    ///
    /// None that a caller could cause.
    pub fn pairs(&self) -> Result<Slice<'_, Pair>> {
        Ok(self.engine.ordered.part(self.capacity)?.cast()?)
    }

    /// Where a launch leaves the number of pairs, exact even where it is more than there is room for.
    ///
    /// # Errors
    ///
    /// None that a caller could cause.
    pub fn count(&self) -> Result<Slice<'_, u64>> {
        Ok(self.engine.sweep.state.slice().cast::<u64>()?.range(..1)?)
    }

    /// Waits for the launches so far, and says what the last one did.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyPairs`] where there was too little room: [`FrameGraph::renew`] makes more. [`Error::InvalidAabb`] unless
    /// bad boxes are skipped. What the driver reports.
    pub fn report(&mut self) -> Result<Report> {
        let state = self.engine.sweep.read()?;
        let frame = frame(&self.boxes, self.filters.as_ref(), self.worlds.as_ref());
        let sources = [Source::Device(&frame)];
        let invalid = self.engine.refuse_invalid(&self.config, &sources, &state)?;
        let limit = self.capacity as u64;
        if state.pairs > limit {
            return Err(Error::TooManyPairs {
                count: state.pairs,
                limit,
            });
        }
        Ok(Report {
            pairs: state.pairs,
            tests: state.tests,
            sorts: state.sorts(),
            ..FoundBy::new(&self.plan, state.axis).report(self.boxes.len(), invalid)
        })
    }

    /// Records the graph anew for the boxes as they are now, with room for `capacity` pairs, or for those of this frame if they
    /// are more. Where it fails, nothing can be launched until it succeeds.
    ///
    /// # Errors
    ///
    /// As [`FrameGraph::new`].
    pub fn renew(&mut self, capacity: usize) -> Result<()> {
        // Its memory may be replaced by larger.
        self.engine.stream.synchronize()?;
        self.graph = None;
        let frame = frame(&self.boxes, self.filters.as_ref(), self.worlds.as_ref());
        self.engine.forget_plan();
        self.capacity = prepare(&mut self.engine, &self.config, &frame, capacity)?;
        let (graph, plan) = record(&mut self.engine, &self.config, &frame)?;
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
        filters: filters.map(Buffer::slice),
        worlds: worlds.map(Buffer::slice),
        ..DeviceFrame::boxes(boxes.slice())
    }
}

/// Does all that the graph will do once, so that its memory is there, and answers for how many pairs there is room.
fn prepare(
    engine: &mut Engine,
    config: &Config,
    frame: &DeviceFrame,
    capacity: usize,
) -> Result<usize> {
    let sources = [Source::Device(frame)];
    let all = 0..frame.len() as u64;
    let mut plan = Plan::new(config);
    engine.read_apart(&sources)?;
    engine.arrange(config, &mut plan)?;
    engine.find_pairs(config, &mut plan, &sources, all.clone(), false)?;
    engine.packed.reserve_exact(&engine.stream, capacity)?;
    // Again, with all that there is memory for; and with another plan, should that of the first time have been bad.
    let mut plan = unbounded(config);
    engine.arrange(config, &mut plan)?;
    let by_rows = engine.sweep(config, &plan, all)?;
    engine.order_and_compare(by_rows, false)?;
    engine.stream.synchronize()?;
    Ok(engine.packed.capacity())
}

/// A graph takes what was found to do, whatever work the boxes to come make of it.
const fn unbounded(config: &Config) -> Plan {
    Plan {
        is_bounded: false,
        ..Plan::new(config)
    }
}

fn record(engine: &mut Engine, config: &Config, frame: &DeviceFrame) -> Result<(Graph, Plan)> {
    let stream = engine.stream.clone();
    let mut plan = unbounded(config);
    let mut steps = || {
        engine.read_apart(&[Source::Device(frame)])?;
        engine.arrange(config, &mut plan)?;
        let by_rows = engine.sweep(config, &plan, 0..frame.len() as u64)?;
        engine.order_and_compare(by_rows, false)
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
