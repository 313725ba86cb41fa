//! The state machine of a zone, as a pure function.

/// The state of a sequential zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ZoneState {
    /// Nothing is written.
    #[default]
    Empty,
    /// Opened by a write; the device may close it to open another.
    ImplicitlyOpen,
    /// Opened by the host.
    ExplicitlyOpen,
    /// Partly written and not open.
    Closed,
    /// Written to its end, or finished.
    Full,
    /// It can be read, and never written again.
    ReadOnly,
    /// It can neither be read nor written.
    Offline,
}

impl ZoneState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Empty,
        Self::ImplicitlyOpen,
        Self::ExplicitlyOpen,
        Self::Closed,
        Self::Full,
        Self::ReadOnly,
        Self::Offline,
    ];

    /// The name, as in messages and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::ImplicitlyOpen => "implicitly open",
            Self::ExplicitlyOpen => "explicitly open",
            Self::Closed => "closed",
            Self::Full => "full",
            Self::ReadOnly => "read only",
            Self::Offline => "offline",
        }
    }

    /// Tells whether it counts against the limit of open zones.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpen | Self::ExplicitlyOpen)
    }

    /// Tells whether it counts against the limit of active zones.
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Self::Closed)
    }
}

/// A thing that happens to a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZoneEvent {
    /// A write or an append at its write pointer begins.
    Write,
    /// The write pointer has come to the end of its capacity; that of a closed zone by the flush of
    /// a random write area.
    Filled,
    /// The host opens it.
    Open,
    /// The host closes it.
    Close,
    /// The host finishes it.
    Finish,
    /// The host resets it.
    Reset,
    /// The device closes it in favour of another.
    GiveWay,
    /// The power comes back after a cut.
    PowerOn,
    /// The device can no longer write it.
    WornOut,
    /// The device can no longer read it.
    Lost,
}

impl ZoneEvent {
    /// Every event.
    pub const ALL: [Self; 10] = [
        Self::Write,
        Self::Filled,
        Self::Open,
        Self::Close,
        Self::Finish,
        Self::Reset,
        Self::GiveWay,
        Self::PowerOn,
        Self::WornOut,
        Self::Lost,
    ];
}

/// The consequence of an event for a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// The zone is in this state now.
    To(ZoneState),
    /// The event is an error in this state, and nothing changes.
    Refused,
}

/// The state after an event; `has_content` if at least one block is written, or may be in a random
/// write area.
pub const fn transition(state: ZoneState, event: ZoneEvent, has_content: bool) -> Transition {
    use ZoneEvent as E;
    use ZoneState as S;
    let left = if has_content { S::Closed } else { S::Empty };
    Transition::To(match (state, event) {
        (S::Offline, E::PowerOn | E::Lost) | (_, E::Lost) => S::Offline,
        (S::Offline, _) => return Transition::Refused,
        (S::ReadOnly, E::PowerOn | E::WornOut) | (_, E::WornOut) => S::ReadOnly,
        (S::ReadOnly, _) => return Transition::Refused,
        (_, E::Reset) => S::Empty,
        (_, E::Finish) => S::Full,
        (S::Full | S::Empty | S::Closed, E::PowerOn) => state,
        (_, E::PowerOn) => left,
        (S::Full, _) => return Transition::Refused,
        (S::Empty | S::Closed, E::Write) => S::ImplicitlyOpen,
        (S::ImplicitlyOpen | S::ExplicitlyOpen, E::Write) => state,
        (S::ImplicitlyOpen | S::ExplicitlyOpen | S::Closed, E::Filled) => S::Full,
        (_, E::Open) => S::ExplicitlyOpen,
        (S::Closed, E::Close) => S::Closed,
        (S::ImplicitlyOpen | S::ExplicitlyOpen, E::Close) => left,
        (S::ImplicitlyOpen, E::GiveWay) => left,
        (S::Empty, E::Close)
        | (S::Empty, E::Filled)
        | (S::Empty | S::Closed | S::ExplicitlyOpen, E::GiveWay) => return Transition::Refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every state and event, as the NVMe Zoned Namespace command set has them: one letter a state
    /// (E, I, X, C, F, R, O), `-` for an error. Events in the order of [`ZoneEvent::ALL`].
    const TABLE: [(ZoneState, &str); 7] = [
        (ZoneState::Empty, "I-X-FE-ERO"),
        (ZoneState::ImplicitlyOpen, "IFXCFECCRO"),
        (ZoneState::ExplicitlyOpen, "XFXCFE-CRO"),
        (ZoneState::Closed, "IFXCFE-CRO"),
        (ZoneState::Full, "----FE-FRO"),
        (ZoneState::ReadOnly, "-------RRO"),
        (ZoneState::Offline, "-------O-O"),
    ];

    #[test]
    fn every_transition_is_that_of_the_table() {
        for (state, row) in TABLE {
            for (event, expected) in ZoneEvent::ALL.into_iter().zip(row.chars()) {
                let letter = match transition(state, event, true) {
                    Transition::To(ZoneState::ExplicitlyOpen) => 'X',
                    Transition::To(to) => to.name().to_uppercase().chars().next().unwrap(),
                    Transition::Refused => '-',
                };
                assert_eq!(letter, expected, "{state:?} {event:?}");
            }
        }
    }

    #[test]
    fn an_open_zone_without_content_is_empty_when_it_is_closed() {
        for event in [ZoneEvent::Close, ZoneEvent::PowerOn] {
            let closed = transition(ZoneState::ExplicitlyOpen, event, false);
            assert_eq!(closed, Transition::To(ZoneState::Empty));
        }
    }
}
