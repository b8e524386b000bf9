//! The frame on its way in: from the host or from the device, whole or only what has changed, to boxes that are checked and stored.

pub(crate) mod device_frame;
pub(crate) mod patch;
pub(crate) mod scene;
pub(crate) mod source;
