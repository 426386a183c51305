// Node's ways to write a file, each done to protected and to unprotected paths; prints what it observes.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import fsp from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';

function plain(value) {
  const text = Buffer.isBuffer(value) ? value.toString('latin1') : JSON.stringify(value);
  if (text === undefined || text.length <= 200) return text;
  return `${text.length} of ${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
}

async function see(label, action) {
  try {
    console.log(`${label}: ${plain(await action())}`);
  } catch (error) {
    console.log(`${label}: ${error.code ?? error}`);
  }
}

const read = (at) => fs.readFileSync(at, 'utf8');

async function sync(old, fresh) {
  await see('readFileSync', () => read(old));
  await see('appendFileSync', () => fs.appendFileSync(old, 'appended\n'));
  await see('read back', () => read(old));
  await see('writeFileSync', () => fs.writeFileSync(old, 'written\n'));
  await see('writeFileSync wx', () => fs.writeFileSync(fresh, 'new\n', { flag: 'wx', mode: 0o600 }));
  await see('writeFileSync wx again', () => fs.writeFileSync(fresh, 'no', { flag: 'wx' }));
  await see('mode', () => (fs.statSync(fresh).mode & 0o777).toString(8));
  await see('copyFileSync', () => fs.copyFileSync('src/tool.sh', fresh));
  await see('copyFileSync EXCL', () => fs.copyFileSync('src/tool.sh', fresh, fs.constants.COPYFILE_EXCL));
  await see('copyFileSync FICLONE', () =>
    fs.copyFileSync('src/big.txt', fresh, fs.constants.COPYFILE_FICLONE),
  );
  await see('size', () => fs.statSync(fresh).size);
  await see('renameSync', () => fs.renameSync(fresh, old));
  await see('source is gone', () => fs.existsSync(fresh));
  await see('truncateSync', () => fs.truncateSync(old, 5));
  await see('read back', () => read(old));
  await see('openSync r+', () => {
    const fd = fs.openSync(old, 'r+');
    fs.writeSync(fd, 'XY', 1);
    fs.fsyncSync(fd);
    fs.futimesSync(fd, 1_600_000_000.5, 1_500_000_000.25);
    fs.fchmodSync(fd, 0o640);
    const size = fs.fstatSync(fd).size;
    const got = Buffer.alloc(10);
    const n = fs.readSync(fd, got, 0, 10, 0);
    fs.closeSync(fd);
    return [size, got.toString('latin1', 0, n), fs.statSync(old).mtimeMs, fs.statSync(old).mode & 0o777];
  });
  await see('readv and writev', () => {
    const fd = fs.openSync(old, 'a+');
    fs.writevSync(fd, [Buffer.from('one '), Buffer.from('two\n')]);
    const got = [Buffer.alloc(3), Buffer.alloc(4)];
    fs.readvSync(fd, got, 0);
    fs.closeSync(fd);
    return Buffer.concat(got);
  });
  await see('linkSync', () => fs.linkSync(old, fresh));
  await see('nlink', () => fs.statSync(old).nlink);
  await see(
    'one inode',
    () => fs.statSync(old, { bigint: true }).ino === fs.statSync(fresh, { bigint: true }).ino,
  );
  await see('rmSync', () => fs.rmSync(fresh));
  await see('symlinkSync', () => fs.symlinkSync(path.basename(old), fresh));
  await see('readlinkSync', () => fs.readlinkSync(fresh));
  await see('lutimesSync', () => fs.lutimesSync(fresh, 1_000_000_000, 1_000_000_001));
  await see('lstat', () => fs.lstatSync(fresh).mtimeMs);
  await see('unlinkSync', () => fs.unlinkSync(fresh));
  await see('unlinkSync again', () => fs.unlinkSync(fresh));
  await see('readFileSync of nothing', () => read(fresh));
}

async function promises(old, fresh) {
  await see('writeFile', () => fsp.writeFile(fresh, 'x'.repeat(300_000)));
  await see('readFile', async () => (await fsp.readFile(fresh)).length);
  await see('appendFile x20', () =>
    Promise.all(Array.from({ length: 20 }, () => fsp.appendFile(fresh, 'line\n'))),
  );
  await see('size', async () => (await fsp.stat(fresh)).size);
  await see('atomic', async () => {
    const handle = await fsp.open(`${old}.${process.pid}.tmp`, 'wx');
    await handle.writeFile('atomic\n');
    await handle.sync();
    await handle.close();
    await fsp.rename(`${old}.${process.pid}.tmp`, old);
    const directory = await fsp.open(path.dirname(old), 'r');
    await directory.sync();
    await directory.close();
    return fsp.readFile(old, 'utf8');
  });
  await see('cp', () => fsp.cp('src/big.txt', fresh, { preserveTimestamps: true }));
  await see('cp errorOnExist', () => fsp.cp('src/big.txt', fresh, { force: false, errorOnExist: true }));
  await see('chmod', () => fsp.chmod(fresh, 0o600));
  await see('utimes', () => fsp.utimes(fresh, 1_234_567_890, 1_234_567_891));
  await see('stat', async () => {
    const { mode, size, mtimeMs } = await fsp.stat(fresh);
    return [mode & 0o777, size, mtimeMs];
  });
  await see('unlink', () => fsp.unlink(fresh));
}

async function streams(old, fresh) {
  await see('pipeline', () => pipeline(fs.createReadStream('src/big.txt'), fs.createWriteStream(fresh)));
  await see('same', () => read(fresh) === read('src/big.txt'));
  await see('append stream', () =>
    pipeline(
      async function* () {
        for (let i = 0; i < 100; i++) yield `${i}\n`;
      },
      fs.createWriteStream(fresh, { flags: 'a' }),
    ),
  );
  await see('write at a position', () =>
    pipeline(
      async function* () {
        yield 'POSITION';
      },
      fs.createWriteStream(fresh, { flags: 'r+', start: 1000 }),
    ),
  );
  await see('read a range', async () => {
    let got = '';
    for await (const chunk of fs.createReadStream(fresh, { start: 995, end: 1012, encoding: 'utf8' }))
      got += chunk;
    return got;
  });
  await see('rename over', () => fs.renameSync(fresh, old));
  await see('size', () => fs.statSync(old).size);
}

function list(top) {
  return fs
    .readdirSync(top, { recursive: true, withFileTypes: true })
    .map((entry) => {
      const at = path.join(entry.parentPath ?? entry.path, entry.name);
      const kind = entry.isDirectory() ? 'd' : entry.isSymbolicLink() ? 'l' : 'f';
      const shown = kind === 'f' && !at.includes('\ufffd'); // such a name does not lead back to its file
      return `${kind} ${at} ${shown ? fs.statSync(at).size : ''}`;
    })
    .sort();
}

async function trees() {
  await see('mkdir recursive', () => fs.mkdirSync('memory/made/x/y', { recursive: true }));
  await see('mkdir recursive again', () => fs.mkdirSync('memory/made/x/y', { recursive: true }));
  await see('mkdtemp', () => fs.mkdtempSync('memory/made/tmp-').length);
  await see('cp recursive into memory', () =>
    fs.cpSync('src', 'memory/src', { recursive: true, verbatimSymlinks: true }),
  );
  await see('cp recursive out', () => fs.cpSync('memory/deep', 'src/deep', { recursive: true }));
  await see('cp promises', () => fsp.cp('memory/people', 'memory/people2', { recursive: true }));
  await see('list', () => list('memory/people2'));
  await see('rename directory', () => fs.renameSync('memory/people', 'memory/folk'));
  await see('list', () => list('memory/folk'));
  await see('rm without recursive', () => fs.rmSync('memory/folk'));
  await see('rm recursive', () => fs.rmSync('memory/folk', { recursive: true }));
  await see('rm recursive again', () => fs.rmSync('memory/folk', { recursive: true }));
  await see('rm force', () => fs.rmSync('memory/folk', { recursive: true, force: true }));
  await see('rmdir full', () => fs.rmdirSync('memory/deep'));
  await see('rm all memory', () => fsp.rm('memory', { recursive: true }));
  await see('exists', () => fs.existsSync('memory'));
  await see('opendir', async () => {
    const names = [];
    for await (const entry of await fsp.opendir('src')) names.push(entry.name);
    return names.sort();
  });
  await see('thousand files', async () => {
    fs.mkdirSync('memory');
    for (let i = 0; i < 1000; i++) fs.writeFileSync(`memory/n${i}`, String(i));
    const names = fs.readdirSync('memory');
    return [names.length, new Set(names).size];
  });
}

async function watching(old, fresh) {
  const told = new Set();
  const directory = path.dirname(old);
  const watcher = fs.watch(directory, (_event, name) => told.add(name));
  const until = async (name) => {
    for (let i = 0; i < 100 && !told.has(name); i++) await new Promise((done) => setTimeout(done, 20));
    return told.has(name);
  };
  await see('change is told', async () => {
    fs.appendFileSync(old, 'watched\n');
    return until(path.basename(old));
  });
  await see('birth is told', async () => {
    fs.writeFileSync(fresh, 'watched\n');
    return until(path.basename(fresh));
  });
  told.clear();
  await see('rename is told', async () => {
    fs.renameSync(fresh, old);
    return (await until(path.basename(old))) && (await until(path.basename(fresh)));
  });
  watcher.close();
}

const parts = { sync, promises, streams, watching };
const targets = [
  ['memory/old.md', 'memory/new.md'],
  ['src/main.py', 'src/new.py'],
  ['logs/a.jsonl', 'logs/new.jsonl'],
  ['DELIVERABLES.md', 'DELIVERABLES.md.tmp'],
  ['MEMORY.md', 'MEMORY.md.bak'],
  ['README.md', 'README.txt'],
];
process.umask(0o022);
const wanted = process.argv[2];
if (wanted === 'trees') await trees();
else {
  for (const [old, fresh] of targets) {
    console.log(`== ${wanted} ${old}`);
    await parts[wanted](old, fresh);
  }
}
console.log(
  list('.')
    .filter((line) => !line.includes('.git/'))
    .join('\n'),
);
