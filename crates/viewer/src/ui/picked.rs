//! The panel of the picked body: its boxes, their filters, and their pairs.

use crate::state::Viewer;
use egui::{Color32, RichText, Ui};
use radsweep::{Filter, FilterFlags};

/// Max listed pairs; the lines in the picture show all.
const LISTED: usize = 100;

/// The colour of resting pairs in the list; brighter than their lines in the picture, to be read on
/// the dark panel.
const RESTING: Color32 = Color32::from_rgb(190, 150, 245);

impl Viewer {
    pub(super) fn picked(&self, ui: &mut Ui) {
        ui.separator();
        let picked = self.shown().and_then(|shown| shown.picked.as_ref());
        let Some(picked) = picked else {
            ui.weak("Click a body to see its boxes and pairs.");
            return;
        };
        let (boxes, pairs) = (picked.boxes.len(), picked.pairs.len());
        let resting = picked.pairs.iter().filter(|pair| pair.resting).count();
        let resting = match resting {
            0 => String::new(),
            _ => format!(", {resting} resting"),
        };
        ui.strong(format!(
            "Body {} (boxes: {boxes}, pairs: {pairs}{resting})",
            picked.body
        ));
        for own in &picked.boxes {
            ui.monospace(format!("box {}", own.index));
            let corner = |[x, y, z]: [f32; 3]| format!("  {x:>9.3} {y:>9.3} {z:>9.3}");
            ui.monospace(corner(own.aabb.min));
            ui.monospace(corner(own.aabb.max));
            if let Some(filter) = own.filter {
                ui.small(described(&filter));
            }
        }
        if pairs > 0 {
            ui.monospace("own box - box of body");
        }
        for pair in picked.pairs.iter().take(LISTED) {
            let text = format!("{} - {} of body {}", pair.own, pair.other, pair.other_body);
            let text = RichText::new(text).monospace();
            ui.label(match pair.resting {
                true => text.color(RESTING),
                false => text,
            });
        }
        if pairs > LISTED {
            ui.weak(format!("and {} more", pairs - LISTED));
        }
    }
}

/// Describes a filter.
fn described(filter: &Filter) -> String {
    let bits = |bits: u32| match bits {
        u32::MAX => "all".to_owned(),
        bits => format!("{bits:#x}"),
    };
    let mut text = format!("layers {}, mask {}", bits(filter.layers), bits(filter.mask));
    if filter.group != 0 {
        text += &format!(", group {}", filter.group);
    }
    for (flag, name) in [
        (FilterFlags::STATIC, "static"),
        (FilterFlags::ASLEEP, "asleep"),
    ] {
        if filter.flags.contains(flag) {
            text = text + ", " + name;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_described_in_words() {
        assert_eq!(described(&Filter::default()), "layers all, mask all");
        let filter = Filter {
            layers: 0b10,
            mask: 0xff,
            group: 7,
            flags: FilterFlags::STATIC | FilterFlags::ASLEEP,
        };
        assert_eq!(
            described(&filter),
            "layers 0x2, mask 0xff, group 7, static, asleep"
        );
    }
}
