//! Makes pipelines with the shader `scene.wgsl`.

use super::target::DEPTH;
use wgpu::{
    BindGroupLayout, ColorTargetState, CompareFunction, DepthStencilState, Device, FragmentState,
    MultisampleState, PipelineCompilationOptions, PipelineLayout, PipelineLayoutDescriptor,
    PrimitiveState, RenderPipeline, RenderPipelineDescriptor, ShaderModule, VertexBufferLayout,
    VertexState,
};

/// The shader with its constants, and what its pipelines bind.
#[derive(Debug)]
pub(super) struct SceneShader {
    device: Device,
    module: ShaderModule,
    layout: PipelineLayout,
    constants: Vec<(&'static str, f64)>,
}

/// The properties in which pipelines differ.
pub(super) struct Parts<'a> {
    pub vertex: &'a str,
    pub fragment: Option<&'a str>,
    pub buffers: &'a [VertexBufferLayout<'a>],
    pub primitive: PrimitiveState,
    /// How depth is compared, and whether it is written.
    pub depth: (CompareFunction, bool),
    pub multisample: MultisampleState,
    /// The colours that are drawn; `None` for depths alone.
    pub target: Option<ColorTargetState>,
}

impl SceneShader {
    /// Reads the shader, for pipelines that bind a group of a layout.
    pub fn new(
        device: &Device,
        (label, bound): (&str, &BindGroupLayout),
        constants: Vec<(&'static str, f64)>,
    ) -> Self {
        Self {
            device: device.clone(),
            module: device.create_shader_module(wgpu::include_wgsl!("scene.wgsl")),
            layout: device.create_pipeline_layout(&PipelineLayoutDescriptor {
                label: Some(label),
                bind_group_layouts: &[Some(bound)],
                immediate_size: 0,
            }),
            constants,
        }
    }

    /// Compiles a pipeline.
    pub fn pipeline(&self, parts: Parts<'_>) -> RenderPipeline {
        let options = PipelineCompilationOptions {
            constants: &self.constants,
            ..PipelineCompilationOptions::default()
        };
        let buffers: Vec<_> = parts.buffers.iter().cloned().map(Some).collect();
        let targets: Vec<_> = parts.target.into_iter().map(Some).collect();
        self.device
            .create_render_pipeline(&RenderPipelineDescriptor {
                label: Some(parts.vertex),
                layout: Some(&self.layout),
                vertex: VertexState {
                    module: &self.module,
                    entry_point: Some(parts.vertex),
                    compilation_options: options.clone(),
                    buffers: &buffers,
                },
                primitive: parts.primitive,
                depth_stencil: Some(DepthStencilState {
                    format: DEPTH,
                    depth_write_enabled: Some(parts.depth.1),
                    depth_compare: Some(parts.depth.0),
                    stencil: Default::default(),
                    bias: Default::default(),
                }),
                multisample: parts.multisample,
                fragment: parts.fragment.map(|entry_point| FragmentState {
                    module: &self.module,
                    entry_point: Some(entry_point),
                    compilation_options: options,
                    targets: &targets,
                }),
                multiview_mask: None,
                cache: None,
            })
    }
}
