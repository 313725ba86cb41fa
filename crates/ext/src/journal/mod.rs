//! The journal: its format, its replay after a crash, and the writing of transactions.
