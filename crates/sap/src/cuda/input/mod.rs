//! The stages `upload` and `bounds`: a frame from the host or from the device, whole or only its
//! changed boxes, becomes checked and stored boxes.

pub(crate) mod device_frame;
pub(crate) mod patch;
pub(crate) mod reader;
pub(crate) mod scene;
pub(crate) mod source;
