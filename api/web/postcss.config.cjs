// Mantine's mixins for colour schemes and breakpoints, in CSS modules.
module.exports = { plugins: { "postcss-preset-mantine": {} } }
