//! Scenes that live on the device that draws: it moves the bodies, finds their pairs and draws them
//! from the same buffers. The host reads some numbers of each frame.

#[cfg(not(feature = "wgpu"))]
mod absent;
#[cfg(feature = "wgpu")]
mod frame;
mod home;
#[cfg(feature = "wgpu")]
mod overview;
#[cfg(feature = "wgpu")]
mod probe;
#[cfg(all(test, feature = "wgpu"))]
mod tests;

#[cfg(not(feature = "wgpu"))]
pub(super) use absent::Live;
#[cfg(feature = "wgpu")]
pub(super) use frame::Live;
pub(super) use home::Home;
