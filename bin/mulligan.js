#!/usr/bin/env node
/*
 * Old Node.js must be able to parse this file, or all it could say is a syntax error: nothing newer than dynamic
 * import here. What it loads may use everything that OLDEST offers.
 */
const OLDEST = [22, 18];

const version = process.versions.node.split('.').map(Number);
const tooOld = version[0] < OLDEST[0] || (version[0] === OLDEST[0] && version[1] < OLDEST[1]);

if (tooOld) {
  complain(`expected Node.js ${OLDEST.join('.')} or newer, this is ${process.versions.node}. Install the latest 24.`);
} else {
  hideExperimentalWarnings();
  import('../dist/cli/main.js').catch((error) => {
    const unbuilt = error.code === 'ERR_MODULE_NOT_FOUND' && String(error.message).includes('dist/cli/main.js');
    if (unbuilt) complain('it has not been built yet. Run npm install, or npm run build, in its folder.');
    else complain(`it could not start: ${process.env.MULLIGAN_DEBUG === '1' ? error.stack : error.message}`);
  });
}

function complain(message) {
  process.stderr.write(`mulligan: ${message}\n`);
  process.exitCode = 1;
}

/** Node.js 22 announces on standard error that node:sqlite and type stripping are experimental: not the user's business. */
function hideExperimentalWarnings() {
  const emitWarning = process.emitWarning;
  process.emitWarning = (warning, ...rest) => {
    const type = rest[0] && typeof rest[0] === 'object' ? rest[0].type : rest[0];
    if (type === 'ExperimentalWarning' && /SQLite|Type Stripping/i.test(String(warning))) return;
    emitWarning.call(process, warning, ...rest);
  };
}
