//! Figures of real drives, as published. Sources in short; `profiles` and `docs/drives.md` have them in
//! full.

use super::{Published, Reading, Test, Workload};

/// A figure that the profile was not made with.
const fn check(reading: Reading, value: f64, limit: f64) -> Published {
    Published { reading, value, limit, is_calibrated: false }
}

/// A figure that the profile was made with.
const fn calibrated(reading: Reading, value: f64, limit: f64) -> Published {
    Published { reading, value, limit, is_calibrated: true }
}

const fn test(
    device: &'static str,
    profile: &'static str,
    workload: Workload,
    source: &'static str,
    figures: &'static [Published],
) -> Test {
    Test { device, profile, workload, source, figures }
}

/// All tests, by device.
pub const TESTS: &[Test] = &[
    test(
        "Samsung 970 EVO 250 GB",
        "evo970-250g",
        Workload::Fill,
        "data sheet; Techgage; TechPowerUp",
        &[
            calibrated(Reading::LevelMb, 1500.0, 20.0),
            check(Reading::CliffGb, 13.0, 10.0),
            calibrated(Reading::MbBetween(30.0, 250.0), 300.0, 20.0),
        ],
    ),
    test(
        "Samsung 970 EVO 500 GB",
        "evo970-500g",
        Workload::Fill,
        "data sheet; Techgage; TechPowerUp",
        &[
            check(Reading::LevelMb, 2300.0, 20.0),
            check(Reading::CliffGb, 22.0, 10.0),
            check(Reading::MbBetween(40.0, 500.0), 600.0, 20.0),
            check(Reading::WholeMb, 663.0, 10.0),
        ],
    ),
    test(
        "Samsung 970 EVO 1 TB",
        "evo970-1t",
        Workload::Fill,
        "data sheet; Techgage; TechPowerUp",
        &[
            calibrated(Reading::LevelMb, 2500.0, 20.0),
            check(Reading::CliffGb, 42.0, 10.0),
            check(Reading::MbBetween(80.0, 1000.0), 1200.0, 20.0),
        ],
    ),
    test(
        "Samsung 970 EVO 250 GB",
        "evo970-250g",
        Workload::Reads { blocks: 1, depth: 1 },
        "data sheet, 15,000 a second",
        &[calibrated(Reading::MeanUs, 66.7, 10.0)],
    ),
    test(
        "Samsung 970 EVO 250 GB",
        "evo970-250g",
        Workload::Reads { blocks: 1, depth: 128 },
        "data sheet",
        &[check(Reading::ThousandsPerSecond, 200.0, 15.0)],
    ),
    test(
        "Samsung 970 EVO 250 GB",
        "evo970-250g",
        Workload::Writes { depth: 128 },
        "data sheet",
        &[check(Reading::ThousandsPerSecond, 350.0, 15.0)],
    ),
    test(
        "Samsung 970 EVO 500 GB",
        "evo970-500g",
        Workload::Reads { blocks: 1, depth: 128 },
        "data sheet",
        &[check(Reading::ThousandsPerSecond, 370.0, 15.0)],
    ),
    test(
        "Samsung 970 EVO 500 GB",
        "evo970-500g",
        Workload::Writes { depth: 128 },
        "data sheet",
        &[check(Reading::ThousandsPerSecond, 450.0, 15.0)],
    ),
    test(
        "Samsung 970 EVO 1 TB",
        "evo970-1t",
        Workload::Reads { blocks: 1, depth: 128 },
        "data sheet",
        &[calibrated(Reading::ThousandsPerSecond, 500.0, 15.0)],
    ),
    test(
        "Samsung 970 EVO 1 TB",
        "evo970-1t",
        Workload::Writes { depth: 128 },
        "data sheet",
        &[calibrated(Reading::ThousandsPerSecond, 450.0, 15.0)],
    ),
    test(
        "Crucial P1 1 TB",
        "p1-1t",
        Workload::Fill,
        "TechPowerUp",
        &[
            check(Reading::LevelMb, 1600.0, 20.0),
            check(Reading::CliffGb, 140.0, 10.0),
            check(Reading::MbBetween(200.0, 900.0), 150.0, 20.0),
        ],
    ),
    test(
        "ADATA Atom 50 1 TB",
        "atom50-1t",
        Workload::Fill,
        "TechPowerUp",
        &[
            calibrated(Reading::LevelMb, 4500.0, 20.0),
            calibrated(Reading::CliffGb, 280.0, 10.0),
            check(Reading::MbBetween(300.0, 480.0), 2000.0, 20.0),
            check(Reading::MbBetween(550.0, 950.0), 500.0, 20.0),
            check(Reading::WholeMb, 800.0, 10.0),
        ],
    ),
    test(
        "Samsung PM9A3 960 GB",
        "pm9a3-960g",
        Workload::Reads { blocks: 1, depth: 1 },
        "SSD-iq",
        &[calibrated(Reading::MeanUs, 64.0, 10.0)],
    ),
    test(
        "Samsung PM9A3 960 GB",
        "pm9a3-960g",
        Workload::Overwrite { gib: 894.0 },
        "SSD-iq",
        &[check(Reading::HostMib, 279.0, 15.0)],
    ),
    test(
        "Samsung PM9A3 960 GB",
        "pm9a3-960g",
        Workload::AtRate { writes: 10_000.0 },
        "SSD-iq",
        &[
            check(Reading::QuantileUs(0.5), 64.0, 20.0),
            check(Reading::QuantileUs(0.99), 236.0, 40.0),
            check(Reading::WriteQuantileUs(0.5), 11.0, 20.0),
            check(Reading::WriteQuantileUs(0.99), 13.0, 40.0),
        ],
    ),
    test(
        "Samsung PM9A3 960 GB",
        "pm9a3-960g",
        Workload::AtRate { writes: 30_000.0 },
        "SSD-iq",
        &[
            check(Reading::QuantileUs(0.5), 73.0, 20.0),
            check(Reading::QuantileUs(0.99), 318.0, 40.0),
            check(Reading::WriteQuantileUs(0.5), 11.0, 20.0),
            check(Reading::WriteQuantileUs(0.99), 14.0, 40.0),
        ],
    ),
    test(
        "Samsung PM9A3 960 GB",
        "pm9a3-960g",
        Workload::AtRate { writes: 50_000.0 },
        "SSD-iq",
        &[
            check(Reading::QuantileUs(0.5), 104.0, 20.0),
            check(Reading::QuantileUs(0.99), 372.0, 40.0),
            check(Reading::WriteQuantileUs(0.5), 12.0, 20.0),
            check(Reading::WriteQuantileUs(0.99), 43.0, 40.0),
        ],
    ),
    test(
        "Micron 7450 MAX 800 GB",
        "m7450max-800g",
        Workload::Overwrite { gib: 372.0 },
        "SSD-iq, OCP counters",
        &[check(Reading::Amplification, 1.11, 5.0), check(Reading::HostMib, 1220.0, 10.0)],
    ),
    test(
        "Micron 7450 MAX 800 GB",
        "m7450max-800g",
        Workload::Overwrite { gib: 447.0 },
        "SSD-iq, OCP counters",
        &[check(Reading::Amplification, 1.17, 5.0), check(Reading::HostMib, 1112.0, 10.0)],
    ),
    test(
        "Micron 7450 MAX 800 GB",
        "m7450max-800g",
        Workload::Overwrite { gib: 521.0 },
        "SSD-iq, OCP counters",
        &[check(Reading::Amplification, 1.28, 5.0), check(Reading::HostMib, 990.0, 10.0)],
    ),
    test(
        "Micron 7450 MAX 800 GB",
        "m7450max-800g",
        Workload::Overwrite { gib: 596.0 },
        "SSD-iq, OCP counters",
        &[check(Reading::Amplification, 1.41, 5.0), check(Reading::HostMib, 877.0, 10.0)],
    ),
    test(
        "Micron 7450 MAX 800 GB",
        "m7450max-800g",
        Workload::Overwrite { gib: 670.0 },
        "SSD-iq, OCP counters",
        &[calibrated(Reading::Amplification, 1.6, 5.0), check(Reading::HostMib, 756.0, 10.0)],
    ),
    test(
        "Micron 7450 MAX 800 GB",
        "m7450max-800g",
        Workload::Overwrite { gib: 745.0 },
        "SSD-iq, OCP counters",
        &[
            check(Reading::Amplification, 1.89, 5.0),
            check(Reading::HostMib, 623.0, 10.0),
            check(Reading::DecayMb(0.05, 0.4), 1450.0, 10.0),
            // between the figures at 0.40 and 0.50 drive writes
            check(Reading::DecayBegins, 0.45, 11.0),
            check(Reading::DecayMb(0.45, 0.55), 459.0, 10.0),
            check(Reading::DecayMb(0.95, 1.05), 716.0, 10.0),
            check(Reading::DecayMb(1.45, 1.55), 651.0, 10.0),
        ],
    ),
    test(
        "WD ZN540 1 TB",
        "nvmeb-a",
        Workload::Reads { blocks: 1, depth: 1 },
        "NVMe benchmarks of 2023",
        &[calibrated(Reading::MeanUs, 72.6, 10.0), check(Reading::QuantileUs(0.99), 81.0, 25.0)],
    ),
    test(
        "WD ZN540 1 TB",
        "nvmeb-a",
        Workload::Reads { blocks: 1, depth: 4 },
        "NVMe benchmarks of 2023",
        &[check(Reading::MeanUs, 76.0, 10.0), check(Reading::QuantileUs(0.99), 129.0, 25.0)],
    ),
    test(
        "WD ZN540 1 TB",
        "nvmeb-a",
        Workload::Reads { blocks: 1, depth: 16 },
        "NVMe benchmarks of 2023",
        &[check(Reading::MeanUs, 91.5, 10.0), check(Reading::QuantileUs(0.99), 196.0, 25.0)],
    ),
    test(
        "WD ZN540 1 TB",
        "nvmeb-a",
        Workload::Reads { blocks: 1, depth: 32 },
        "NVMe benchmarks of 2023",
        &[
            check(Reading::ThousandsPerSecond, 274.0, 10.0),
            check(Reading::MeanUs, 116.0, 10.0),
            check(Reading::QuantileUs(0.99), 301.0, 25.0),
        ],
    ),
    test(
        "WD ZN540 1 TB",
        "nvmeb-a",
        Workload::Reads { blocks: 1, depth: 64 },
        "NVMe benchmarks of 2023",
        &[
            check(Reading::ThousandsPerSecond, 365.0, 10.0),
            check(Reading::MeanUs, 175.0, 10.0),
            check(Reading::QuantileUs(0.99), 553.0, 25.0),
        ],
    ),
    test(
        "WD ZN540 1 TB",
        "nvmeb-a",
        Workload::Reads { blocks: 1, depth: 256 },
        "NVMe benchmarks of 2023",
        &[
            calibrated(Reading::ThousandsPerSecond, 437.0, 10.0),
            check(Reading::MeanUs, 585.0, 10.0),
            check(Reading::QuantileUs(0.99), 1679.0, 25.0),
        ],
    ),
    test(
        "WD ZN540 1 TB",
        "nvmeb-a",
        Workload::Reads { blocks: 2, depth: 1 },
        "NVMe benchmarks of 2023",
        &[check(Reading::MeanUs, 84.1, 10.0)],
    ),
    test(
        "WD ZN540 1 TB",
        "nvmeb-a",
        Workload::Reads { blocks: 2, depth: 32 },
        "NVMe benchmarks of 2023",
        &[check(Reading::MeanUs, 144.0, 10.0)],
    ),
    test(
        "WD ZN540 1 TB",
        "nvmeb-a",
        Workload::Reads { blocks: 2, depth: 256 },
        "NVMe benchmarks of 2023",
        &[check(Reading::MeanUs, 864.0, 10.0)],
    ),
    test(
        "WD ZN540 1 TB",
        "nvmeb-a",
        Workload::Reads { blocks: 4, depth: 1 },
        "NVMe benchmarks of 2023",
        &[check(Reading::MeanUs, 101.6, 10.0)],
    ),
    test(
        "WD ZN540 1 TB",
        "nvmeb-a",
        Workload::Reads { blocks: 4, depth: 32 },
        "NVMe benchmarks of 2023",
        &[check(Reading::MeanUs, 200.0, 10.0)],
    ),
    test(
        "WD ZN540 1 TB",
        "nvmeb-a",
        Workload::Reads { blocks: 4, depth: 256 },
        "NVMe benchmarks of 2023",
        &[check(Reading::MeanUs, 1595.0, 10.0)],
    ),
    test(
        "nvme-a of the NVMe benchmarks",
        "nvmeb-a",
        Workload::Beside { mb_per_s: 262.0, depth: 1 },
        "NVMe benchmarks of 2023",
        &[
            check(Reading::MeanUs, 100.0, 20.0),
            check(Reading::QuantileUs(0.95), 222.0, 30.0),
            check(Reading::QuantileUs(0.99), 317.0, 30.0),
        ],
    ),
    test(
        "nvme-a of the NVMe benchmarks",
        "nvmeb-a",
        Workload::Beside { mb_per_s: 1049.0, depth: 1 },
        "NVMe benchmarks of 2023",
        &[
            check(Reading::MeanUs, 189.0, 20.0),
            check(Reading::QuantileUs(0.95), 313.0, 30.0),
            check(Reading::QuantileUs(0.99), 408.0, 30.0),
        ],
    ),
    test(
        "nvme-a of the NVMe benchmarks",
        "nvmeb-a",
        Workload::Beside { mb_per_s: 262.0, depth: 32 },
        "NVMe benchmarks of 2023",
        &[
            check(Reading::MeanUs, 225.0, 20.0),
            check(Reading::QuantileUs(0.95), 799.0, 30.0),
            check(Reading::QuantileUs(0.99), 1434.0, 30.0),
        ],
    ),
    test(
        "Samsung 983 ZET 480 GB",
        "zet983-480g",
        Workload::Reads { blocks: 1, depth: 1 },
        "AnandTech",
        &[calibrated(Reading::MeanUs, 16.0, 15.0)],
    ),
    test(
        "UFS 3.1",
        "ufs31-256g",
        Workload::Fill,
        "FreeBSD review D51893",
        &[
            calibrated(Reading::LevelMb, 1644.0, 20.0),
            calibrated(Reading::MbBetween(40.0, 200.0), 583.0, 20.0),
        ],
    ),
    test(
        "Samsung eMMC 5.1 64 GB",
        "emmc51-64g",
        Workload::Fill,
        "CDRInfo",
        &[calibrated(Reading::WholeMb, 125.0, 20.0)],
    ),
    test(
        "Samsung eMMC 5.1 64 GB",
        "emmc51-64g",
        Workload::InARow { depth: 4 },
        "CDRInfo",
        &[check(Reading::WholeMb, 250.0, 20.0)],
    ),
    test(
        "Samsung eMMC 5.1 64 GB",
        "emmc51-64g",
        Workload::Near { is_write: false, depth: 32 },
        "CDRInfo",
        &[check(Reading::ThousandsPerSecond, 11.0, 20.0)],
    ),
    test(
        "Samsung eMMC 5.1 64 GB",
        "emmc51-64g",
        Workload::Near { is_write: true, depth: 32 },
        "CDRInfo",
        &[calibrated(Reading::ThousandsPerSecond, 13.0, 20.0)],
    ),
    test(
        "microSD A2 with queue",
        "sd-a2-64g",
        Workload::Near { is_write: false, depth: 32 },
        "Raspberry Pi SD cards",
        &[calibrated(Reading::ThousandsPerSecond, 5.0, 20.0)],
    ),
    test(
        "microSD A2 with queue",
        "sd-a2-64g",
        Workload::Near { is_write: true, depth: 32 },
        "Raspberry Pi SD cards",
        &[check(Reading::ThousandsPerSecond, 2.0, 20.0)],
    ),
    test(
        "microSD A2 with queue",
        "sd-fast-a2-64g",
        Workload::Near { is_write: true, depth: 32 },
        "Raspberry Pi SD cards",
        &[check(Reading::ThousandsPerSecond, 2.0, 20.0)],
    ),
];
