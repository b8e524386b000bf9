//! Boxes and pairs that never leave the GPU: a kernel of the example moves bodies and writes their
//! boxes, the broad phase reads them in device memory, and its pairs stay there too. Only the
//! report is downloaded, and at the end the last frame, to check it.
//!
//! `cargo run --release -p radsweep --features cuda --example device_resident`. Without a GPU it
//! prints a message and ends.

#[cfg(not(cuda))]
fn main() {
    println!("built without the feature `cuda`, which this example needs");
}

#[cfg(cuda)]
fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

#[cfg(cuda)]
fn run() -> Result<(), Box<dyn std::error::Error>> {
    use device::Bodies;
    use radsweep::gpu::{Device, Stream};
    use radsweep::{Backend, BroadPhase, Config};

    let device = match Device::first() {
        Ok(device) => device,
        Err(error) => {
            println!("this example needs a GPU: {error}");
            return Ok(());
        }
    };
    // The tests set `RADSWEEP_QUICK=1` for fewer bodies.
    let quick = std::env::var("RADSWEEP_QUICK").is_ok_and(|value| value == "1");
    let n = if quick { 2_000 } else { 1_000_000 };
    println!("{n} bodies on {}", device.info().name);

    let config = Config {
        backend: Backend::Cuda,
        ..Config::default()
    };
    let mut broad_phase = BroadPhase::new(config.clone())?;
    // A stream of our own; events order it with that of the broad phase.
    let ours = Stream::new(&device)?;
    let mut bodies = Bodies::new(&device, &ours, n)?;
    let Some(theirs) = broad_phase.stream().cloned() else {
        return Err("the broad phase does not run on the GPU".into());
    };
    println!("frame    pairs  started    ended  update, ms of the device");
    for frame in 0..8 {
        bodies.step(&ours)?;
        theirs.wait(&ours.record()?)?;
        let report = broad_phase.update_device(bodies.boxes())?;
        println!(
            "{frame:5} {:8} {:8} {:8} {:7.3}",
            report.pairs, report.started, report.ended, report.stats.timings.total
        );
    }

    // The pairs in device memory, for a kernel that uses them.
    let on_device = broad_phase.device_pairs()?.len();
    println!("{on_device} pairs are on the device; none was downloaded yet");
    let boxes = ours.to_vec(bodies.boxes())?;
    let mut on_cpu = BroadPhase::new(Config {
        backend: Backend::Cpu,
        ..config
    })?;
    on_cpu.update(&boxes)?;
    broad_phase.download()?;
    if broad_phase.pairs() != on_cpu.pairs() {
        return Err("the CPU finds other pairs in the same boxes".into());
    }
    println!("the CPU finds the same pairs in the same boxes");
    Ok(())
}

#[cfg(cuda)]
mod device {
    use radsweep::Aabb;
    use radsweep::gpu::{Buffer, Device, Kernel, Launch, Result, Slice, Stream, args};

    const PTX: &str = include_str!("ptx/device_resident.ptx");
    const RADIUS: f32 = 0.5;
    const BLOCK: u32 = 256;

    pub struct Bodies {
        step: Kernel,
        places: Buffer<[f32; 3]>,
        velocities: Buffer<[f32; 3]>,
        boxes: Buffer<Aabb>,
        side: f32,
    }

    impl Bodies {
        /// Creates `n` bodies in a cube, thrown in all directions; the same in every run.
        pub fn new(device: &Device, stream: &Stream, n: u32) -> Result<Self> {
            let side = (n as f32).cbrt() * 1.5;
            let mix = |index: u32| {
                let mixed = index.wrapping_mul(0x9e37_79b1);
                (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca77) as f32 / u32::MAX as f32
            };
            let three = |index: u32| [0, 1, 2].map(|axis| mix(3 * index + axis));
            let places: Vec<_> = (0..n)
                .map(|index| three(index).map(|at| at * side))
                .collect();
            let velocities: Vec<_> = (n..2 * n)
                .map(|index| three(index).map(|at| at * 0.2 - 0.1))
                .collect();
            Ok(Self {
                step: device
                    .load("device_resident.ptx", PTX.as_bytes())?
                    .kernel("step")?,
                places: stream.from_slice(&places)?,
                velocities: stream.from_slice(&velocities)?,
                boxes: stream.alloc(n as usize)?,
                side,
            })
        }

        /// Moves all bodies and writes their boxes.
        pub fn step(&mut self, stream: &Stream) -> Result<()> {
            let n = self.boxes.len() as u32;
            let (places, velocities) = (self.places.slice_mut(), self.velocities.slice_mut());
            let boxes = self.boxes.slice_mut();
            let launch = Launch::linear(n.div_ceil(BLOCK), BLOCK);
            let args = args![places, velocities, boxes, n, RADIUS, self.side];
            // SAFETY: the arguments match the kernel, which writes `n` elements of each buffer;
            // each has that many.
            unsafe { stream.launch(&self.step, &launch, &args) }
        }

        pub fn boxes(&self) -> Slice<'_, Aabb> {
            self.boxes.slice()
        }
    }
}
