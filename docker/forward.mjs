// Passes connections to the port of a container on to the console, which listens only on the loopback address of that
// container. Docker passes connections only to its other addresses.
import { connect, createServer } from 'node:net';

createServer((outer) => {
  const inner = connect(8090, '127.0.0.1');
  const close = () => {
    inner.destroy();
    outer.destroy();
  };
  inner.on('error', close).on('close', close);
  outer.on('error', close).on('close', close);
  outer.pipe(inner).pipe(outer);
}).listen(8091);
